"""Images recovered from classifiers: how a class looks is told about everybody, how a person looks is not."""

import numpy as np
import pytest
from readable import flaws

pytest.importorskip("sklearn")

from discreet import attacks
from discreet.attacks.data.gallery import Gallery, digit_gallery
from discreet.attacks.models.adapters import reduce_confidences
from discreet.attacks.models.image_inversion import (
    fit_image_prior,
    label_confidences,
    recover_images,
)
from discreet.attacks.models.inversion_games import nearest_picture
from discreet.attacks.models.plots import ImageMosaic
from tools.pictures.attack_figures import mosaic_by_defence, mosaics_figure

SURE = 1 - 1e-10  # of an interval: a false alarm is not to be seen
NAMED = "images recognised by an independent classifier"


@pytest.fixture(scope="module")
def exact():
    return attacks.invert(random_state=0, repeats=2)


@pytest.fixture(scope="module")
def people():
    return attacks.invert(classes="people", random_state=0, repeats=3)


def least(result):
    return result.evidence.implied(confidence=SURE).low


class Certain:
    """A classifier of 64 pixels by which half of an image is darker."""

    classes_ = np.array([0, 5])

    def predict_proba(self, X):
        left = X.reshape(-1, 8, 8)[:, :, :4].sum(axis=(1, 2))
        right = X.reshape(-1, 8, 8)[:, :, 4:].sum(axis=(1, 2))
        sure = 1 / (1 + np.exp(-(right - left)))
        return np.column_stack([1 - sure, sure])


class Says:
    """A classifier that says the same for every image, or rubbish."""

    def __init__(self, told, classes=(0, 5)):
        self.told, self.classes_ = told, np.array(classes)

    def predict_proba(self, X):
        return np.repeat(self.told, len(X), axis=0)


def test_the_digits_are_recovered_and_recognised(exact):
    assert exact.details[NAMED] >= 0.9
    assert exact.success > 0.75
    assert exact.baseline == 0.1


def test_a_class_image_discloses_no_more_about_members_than_about_non_members(exact):
    assert abs(exact.success - exact.evidence.baseline) < 0.05
    assert least(exact) == 0


@pytest.mark.long
def test_releasing_only_the_most_likely_class_does_not_help(exact):
    easy = attacks.invert(defence="easy", random_state=0, repeats=2)
    assert easy.details[NAMED] >= 0.85
    assert easy.success > exact.success - 0.2


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_the_curator_discloses_no_more_about_members_than_about_non_members(epsilon):
    result = attacks.invert(defence="curator", epsilon=epsilon, random_state=0, repeats=1)
    assert least(result) <= epsilon
    assert abs(result.success - result.evidence.baseline) < 0.2


@pytest.mark.long
def test_a_useful_private_classifier_still_shows_the_class_image():
    result = attacks.invert(defence="curator", epsilon=1000, random_state=0, repeats=1)
    assert result.success > 0.3
    assert result.details[NAMED] > 0.4


def test_a_class_of_one_person_discloses_the_person(people):
    assert people.success > 0.9
    assert people.evidence.baseline < 0.35
    assert people.implied.low > 1


@pytest.mark.long
def test_labels_alone_partly_disclose_a_person():
    easy = attacks.invert(defence="easy", classes="people", random_state=0, repeats=3)
    assert 0.3 < easy.success < 0.8
    assert easy.implied.low > 0.1


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_the_curator_hides_a_class_of_one_person(epsilon):
    result = attacks.invert(defence="curator", epsilon=epsilon, classes="people", random_state=0, repeats=3)
    assert least(result) <= epsilon
    assert result.success < 0.6


@pytest.mark.long
def test_a_classifier_that_claims_to_be_private_is_caught():
    from sklearn.linear_model import LogisticRegression

    def liar(members):
        return LogisticRegression(max_iter=1000).fit(members.images, members.labels)

    result = attacks.invert(defence=liar, epsilon="1/10", classes="people", random_state=0, repeats=3)
    assert result.defence == "own"
    assert result.implied.low > 0.1
    assert result.success > result.ceiling


@pytest.mark.long
def test_noise_that_is_much_too_small_is_caught():
    from sklearn.linear_model import LogisticRegression

    noise = np.random.default_rng(0)

    def liar(members):
        model = LogisticRegression(max_iter=1000).fit(members.images, members.labels)
        model.coef_ += noise.laplace(0, 0.02, model.coef_.shape)
        return model

    result = attacks.invert(defence=liar, epsilon="1/10", classes="people", random_state=0, repeats=3)
    assert result.implied.low > 0.1


def test_the_search_sees_confidences_only_and_finds_what_a_classifier_is_sure_of():
    rng = np.random.default_rng(0)
    dream = fit_image_prior(digit_gallery().images[:300], rng)
    left, right = recover_images(Certain(), [0, 5], dream, rng, 0.0).reshape(2, 8, 8)
    assert left[:, :4].sum() > left[:, 4:].sum() + 5
    assert right[:, 4:].sum() > right[:, :4].sum() + 5


def test_nothing_is_recovered_of_a_class_that_does_not_exist():
    images = np.random.default_rng(0).random((4, 64))
    told = label_confidences(Certain(), [0, 3, 5], images)
    assert (told[:, 1] == 0).all()
    assert told.sum(axis=1) == pytest.approx(np.ones(4))


def test_label_only_classifiers_return_probabilities_0_and_1():
    images = np.random.default_rng(0).random((6, 64))
    told = reduce_confidences(Certain().predict_proba(images), "label")
    assert set(np.unique(told)) == {0.0, 1.0}
    assert (told.argmax(axis=1) == Certain().predict_proba(images).argmax(axis=1)).all()


def test_nearest_pictures_and_candidates_are_found():
    rng = np.random.default_rng(0)
    images, pictures = rng.random((20, 9)), rng.random((4, 9))
    nearest = [int(((pictures - image) ** 2).sum(axis=1).argmin()) for image in images]
    assert nearest_picture(images, pictures).tolist() == nearest
    assert nearest_picture(images[[3]], images).tolist() == [3]


def test_no_person_is_both_public_and_private():
    twice = Gallery(
        np.tile(digit_gallery().images, (2, 1)), np.tile(digit_gallery().labels, 2), np.tile(np.arange(1797), 2)
    )
    seen = []

    def watched(members):
        seen.append(set(members.people.tolist()))
        assert len(members) == 2 * len(seen[-1])
        return Certain()

    attacks.invert(twice, defence=watched, random_state=0, repeats=1)
    first, second = seen
    assert not first & second
    assert len(first | second) == 1198
    assert 450 < len(first) < 750


@pytest.mark.long
def test_about_half_of_the_people_enrol_and_the_others_leave_an_empty_class():
    seen = []

    def watched(members):
        seen.append(set(members.labels.tolist()))
        return Certain()

    result = attacks.invert(defence=watched, classes="people", random_state=0, repeats=3)
    assert all({0, 1} <= enrolled <= set(range(20)) for enrolled in seen)
    assert result.evidence.members.trials == result.evidence.non_members.trials == 3 * 18
    assert all(first & second == {0, 1} for first, second in zip(seen[::2], seen[1::2], strict=True))


@pytest.mark.long
def test_the_same_seed_gives_the_same_result(people):
    again = attacks.invert(classes="people", random_state=0, repeats=3)
    assert again.evidence == people.evidence
    assert again.details == people.details


def test_the_result_reports_who_is_most_exposed(exact, people):
    assert len(exact.exposure.deciles) == len(people.exposure.deciles) == 10
    assert exact.exposure.deciles[0].value > exact.exposure.deciles[-1].value + 0.3
    assert people.exposure.rarest_hit[0].startswith("image ")


def test_the_plot_shows_recovered_images_beside_the_true_ones(exact):
    pytest.importorskip("matplotlib")
    axes = exact.figure().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["recovered", "members' mean"]
    assert axes.images[0].get_array().shape == (20, 100)


def test_pictures_of_several_defences_are_stacked(exact, people):
    assert list(mosaic_by_defence([exact, exact]).rows) == ["members' mean", "nothing"]
    assert ImageMosaic({"one": np.zeros((2, 9))}).tiled_image().shape == (5, 10)
    figure = mosaics_figure({"classes of many people": [exact], "classes of one person": [people]})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["classes of many people", "classes of one person"]
    assert flaws(figure) == []


@pytest.mark.parametrize(
    ("images", "labels", "people", "said"),
    [
        (np.zeros((2, 5)), [0, 1], None, "square images"),
        (np.zeros(4), [0], None, "square images"),
        (None, [0], None, "square images"),
        (np.full((2, 4), 16.0), [0, 1], None, "pixels from 0 to 1"),
        (np.full((2, 4), np.nan), [0, 1], None, "pixels from 0 to 1"),
        (np.zeros((2, 4)), [0], None, "labels must be"),
        (np.zeros((2, 4)), [0.0, 1.0], None, "labels must be"),
        (np.zeros((2, 4)), [0, -1], None, "labels must be"),
        (np.zeros((2, 4)), [0, 1], [1], "one entry per image"),
        ([["dark"] * 4] * 2, [0, 1], None, "images must be an array of numbers"),
        (np.zeros((2, 4)), [0, [1]], None, "labels must be one class"),
        (np.zeros((2, 4)), ["a", "b"], None, "labels must be"),
    ],
)
def test_invalid_galleries_are_refused(images, labels, people, said):
    with pytest.raises(ValueError, match=said):
        Gallery(images, labels, people)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"data": [1, 2]}, TypeError, r"data must be Gallery\(images, labels\), not list"),
        ({"data": Gallery(np.zeros((70, 4)), [0] * 70)}, ValueError, "at least two classes"),
        ({"data": Gallery(np.zeros((80, 4)), [0] * 70 + [1] * 10)}, ValueError, "images of 60 or more people"),
        ({"data": Gallery(np.zeros((160, 4)), [0, 1] * 80, [0, 1] * 80)}, ValueError, "images of 60 or more people"),
        ({"classes": "faces"}, ValueError, "classes must be one of 'digits', 'people', not 'faces'"),
        ({"repeats": 0}, ValueError, "repeats"),
        ({"defence": "easy", "epsilon": 1}, TypeError, "takes no epsilon"),
        ({"defence": lambda gallery: None}, TypeError, "predict_proba and classes_"),
        ({"defence": lambda gallery: Certain}, TypeError, "the class Certain"),
        ({"defence": lambda gallery: Says(np.full((1, 2), np.nan))}, ValueError, "without NaN"),
        (
            {"defence": lambda gallery: Says(np.ones((1, 3)))},
            ValueError,
            "predict_proba of the defence's model must return",
        ),
        ({"defence": lambda gallery: Says([["a", "b"]])}, TypeError, "an array of numbers"),
        ({"defence": lambda gallery: Says(np.ones((1, 2)), ["three", "five"])}, ValueError, "from 0 to 9"),
        ({"defence": lambda gallery: Says(np.ones((1, 2)), [0, 99])}, ValueError, "from 0 to 9"),
        ({"data": Gallery(np.full((160, 4), 0.5), [0, 1] * 80)}, ValueError, "all images are equal"),
        ({"classes": ["digits"]}, ValueError, "classes must be"),
        ({"random_state": 0.5}, ValueError, "random_state must be"),
    ],
)
def test_invalid_arguments_are_refused(given, kind, said):
    with pytest.raises(kind, match=said):
        attacks.invert(**given)
