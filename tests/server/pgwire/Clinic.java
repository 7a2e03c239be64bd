import java.sql.*;
import java.util.Properties;

/** What JDBC tools do: read the catalog, prepare, fetch in portions, cancel, and see refusals. */
public class Clinic {
    static final String BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward";

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", "ana");
        properties.setProperty("password", arguments[1]);
        properties.setProperty("options", "-c epsilon=1");
        properties.setProperty("ApplicationName", "clinic");
        try (Connection connection = DriverManager.getConnection(arguments[0], properties)) {
            DatabaseMetaData catalog = connection.getMetaData();
            print("product", catalog.getDatabaseProductName() + " " + catalog.getDatabaseMajorVersion());
            print("tables", catalog.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME");
            print("columns", catalog.getColumns(null, "public", "visits", "%"), "COLUMN_NAME");
            print("types", catalog.getColumns(null, "public", "visits", "%"), "TYPE_NAME");
            print("keys", catalog.getPrimaryKeys(null, "public", "visits"), "COLUMN_NAME");
            print("imported", catalog.getImportedKeys(null, "public", "tests"), "FKCOLUMN_NAME");
            print("indexes", catalog.getIndexInfo(null, "public", "visits", false, false), "INDEX_NAME");
            print("schemas", catalog.getSchemas(), "TABLE_SCHEM");
            print("functions", catalog.getFunctions(null, null, "%"), "FUNCTION_NAME");
            print("type info", catalog.getTypeInfo().next());
            print("keywords", catalog.getSQLKeywords().isEmpty());
            try (Statement statement = connection.createStatement()) {
                print("wards", statement.executeQuery(BY_WARD), "ward");
                SQLWarning warning = statement.getWarnings();
                print("notice", warning.getMessage().contains("epsilon 1 "));
                print("maximum", statement.execute("SHOW epsilon"));
            }
            try (PreparedStatement prepared =
                    connection.prepareStatement("SELECT COUNT(*) AS n FROM visits WHERE ward = ? AND age > ?")) {
                for (int round = 0; round < 8; round++) { // from the fifth on, a named statement and binary values
                    prepared.setString(1, "A");
                    prepared.setInt(2, 30);
                    ResultSet rows = prepared.executeQuery();
                    rows.next();
                    print("round", rows.getMetaData().getColumnCount() + " " + rows.getLong(1));
                }
            }
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(2);
                print("portions", statement.executeQuery(BY_WARD), "ward");
            }
            connection.rollback();
            try (Statement statement = connection.createStatement()) {
                statement.executeQuery("SELECT * FROM visits LIMIT 10");
            } catch (SQLException refusal) {
                print("refused", refusal.getSQLState() + " " + refusal.getMessage().contains("Aggregate"));
            }
            connection.rollback();
            connection.setAutoCommit(true);
            try (Statement statement = connection.createStatement()) {
                statement.setQueryTimeout(1);
                statement.executeQuery("SELECT pg_sleep(60)");
            } catch (SQLException cancelled) {
                print("cancelled", cancelled.getSQLState());
            }
            print("valid", connection.isValid(5));
        }
    }

    static void print(String what, Object found) {
        System.out.println(what + ": " + found);
    }

    static void print(String what, ResultSet rows, String column) throws SQLException {
        StringBuilder found = new StringBuilder();
        while (rows.next()) {
            found.append(' ').append(rows.getString(column));
        }
        System.out.println(what + ":" + found);
    }
}
