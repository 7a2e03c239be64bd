# What R does with DBI: tables, fields, data frames, results in portions, and an error.
suppressPackageStartupMessages(library(RPostgreSQL))
arguments <- commandArgs(TRUE)
connection <- dbConnect(
  PostgreSQL(), host = "127.0.0.1", port = as.integer(arguments[1]), user = "ana", password = arguments[2],
  dbname = "clinic", options = "-c epsilon=1"
)
cat("tables:", sort(dbListTables(connection)), "\n")
cat("fields:", dbListFields(connection, "wards"), "\n")
by_ward <- "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"
frame <- dbGetQuery(connection, by_ward)
cat("names:", names(frame), "\n")
cat("n:", frame$n, "\n")
result <- dbSendQuery(connection, by_ward)
cat("portion:", nrow(fetch(result, 2)), "\n")
invisible(dbClearResult(result))
refused <- tryCatch(dbGetQuery(connection, "SELECT * FROM visits"), warning = function(w) "yes", error = function(e) "yes")
cat("refused:", refused, "\n")
invisible(dbDisconnect(connection))
