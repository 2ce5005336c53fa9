"""Rows for tests: plain functions with defaults. What a test is about stands in the test itself."""

from array import array
from datetime import timedelta
from itertools import count

from django.utils import timezone

from analysis.models import (
    Evaluation,
    EvaluationScore,
    EvaluationSet,
    EvaluationText,
    HumanvalSet,
    TrainedClassifier,
    TrainingPart,
    TrainingStatement,
)
from annotator import assigning, inviting
from annotator.models import HIT, Assignment, Consent, ConsentForm, HITType, Worker
from generation import readings, runs, trials
from generation.drawing import Output
from generation.models import (
    Demonstration,
    Embedding,
    Generation,
    GenerationRun,
    Label,
    Method,
    Perplexity,
    Prompt,
    ReaderKind,
    Reading,
    Response,
    RunMethod,
    TargetGroup,
    TextReader,
    ToxicityScore,
)

numbers = count(1)

DEMONSTRATIONS = (
    "my aunt drives a crane at the harbor",
    "the chess club meets on thursdays",
    "her bakery opens at five in the morning",
    "our neighbor repairs old radios",
    "the choir sang in three languages",
    "she measured the depth of the lake",
    "my sister plants tomatoes on the roof",
)


def make_group(slug: str = "women", **fields) -> TargetGroup:
    """The group with this slug; the migration's, unless a transactional test emptied the table."""
    defaults = {"name": slug.title(), "words": f"{slug} people"} | fields
    return TargetGroup.objects.get_or_create(slug=slug, defaults=defaults)[0]


def make_generation(text: str | None = None, **fields) -> Generation:
    """A statement outside of any run."""
    defaults = {"label": Label.BENIGN, "method": Method.TOPK}
    text = f"statement number {next(numbers)} is about the weather" if text is None else text
    group = fields.pop("group", None) or make_group()
    return Generation.objects.create(text=text, group=group, **defaults | fields)


def make_demonstrations(
    group: TargetGroup | None = None, *, label: str = Label.BENIGN, texts=DEMONSTRATIONS
) -> list[Demonstration]:
    """A set that prompts can be drawn from."""
    group = group or make_group()
    return [Demonstration.objects.get_or_create(group=group, label=label, text=text)[0] for text in texts]


def make_run(count: int = 3, *, slugs=("women",), labels=(Label.BENIGN,), **options) -> GenerationRun:
    """A queued run of so many statements a group and label, from filled sets; no worker is woken for it."""
    sets = [(make_group(slug), label) for slug in slugs for label in labels]
    for group, label in sets:
        make_demonstrations(group, label=label)
    options = {"language_model": "toy", "seed": 7, "wake": False} | options
    if options.get("method", RunMethod.TOPK) != RunMethod.TOPK:
        options = {"classifier": "toy classifier"} | options
    return runs.start_run(cells=[runs.Cell(group, label, count) for group, label in sets], **options)


def make_searched_generation(**fields) -> Generation:
    """A statement that ALICE found in a run of its own."""
    run = fields.pop("run", None) or make_run(count=1, method=RunMethod.ALICE)
    chunk = run.chunks.get()
    prompt = Prompt.objects.create(group=chunk.group, label=chunk.label, text=f"- my aunt sails {next(numbers)}\n-")
    place = {"run": run, "chunk": chunk, "position": 0, "prompt": prompt, "group": chunk.group, "seed": 5}
    return make_generation(**place | {"method": Method.ALICE} | fields)


def make_responses(group: TargetGroup | None = None, *texts: str, label: str = Label.BENIGN) -> list[Response]:
    """Responses to a prompt of a set, which is filled if it is empty, in a trial of their own."""
    group = group or make_group()
    make_demonstrations(group, label=label)
    trial = trials.ask(group=group, label=label, by=None, language_model="toy")
    outputs = [Output(text=text, tokens=3, log_prob=-2.0, finish_reason="stop") for text in texts]
    trials.store_trial(trial=trial, outputs=outputs, environment={"device": "cpu", "dtype": "float32"})
    return list(trial.responses.all())


def make_reader(kind: str = ReaderKind.ENCODER, **fields) -> TextReader:
    """A model that reads, of which no worker knows."""
    defaults = {"name": f"reader {next(numbers)}", "revision": "1"}
    return TextReader.objects.create(kind=kind, **defaults | fields)


def make_embedding(generation: Generation | None = None, vector=(1.0, 0.0), *, reader=None) -> Embedding:
    """What an encoder made of a statement: the numbers of its vector."""
    stored = array("f", vector).tobytes()
    return Embedding.objects.create(
        generation=generation or make_generation(), reader=reader or make_reader(), vector=stored
    )


def make_toxicity_score(generation: Generation | None = None, toxic_prob=0.5, *, reader=None) -> ToxicityScore:
    reader = reader or make_reader(ReaderKind.CLASSIFIER)
    return ToxicityScore.objects.create(
        generation=generation or make_generation(), reader=reader, toxic_prob=toxic_prob
    )


def make_perplexity(generation: Generation | None = None, value=20.0, *, reader=None, tokens=8) -> Perplexity:
    reader = reader or make_reader(ReaderKind.LANGUAGE_MODEL)
    return Perplexity.objects.create(
        generation=generation or make_generation(), reader=reader, value=value, tokens=tokens
    )


def make_reading(count: int = 2, *, kind: str = ReaderKind.ENCODER, **options) -> Reading:
    """A reading of so many new statements by the embedded model; no worker is woken for it."""
    if "generation_ids" not in options:
        options["generation_ids"] = [make_generation().pk for _ in range(count)]
    return readings.start_reading(kind=kind, **{"model": readings.default_model(kind), "wake": False} | options)


def make_worker(**fields) -> Worker:
    return Worker.objects.create(**fields)


def make_consent_form(version: int = 1, **fields) -> ConsentForm:
    """A published consent form."""
    defaults = {
        "title": "Before you begin",
        "warning": "Some statements may upset you.",
        "purpose": "You judge statements, which makes software better.",
        "risks": "Reading may hurt.",
        "pay": "Every statement is paid, also when you stop early.",
        "contact": "Write to ada@example.org.",
        "withdrawal": "You may withdraw at any time.",
        "published_at": timezone.now(),
    }
    return ConsentForm.objects.create(version=version, **defaults | fields)


def make_consent(worker: Worker, form: ConsentForm | None = None, **fields) -> Consent:
    """The worker's consent to ``form``, by default to the one in force, which is made if there is none."""
    form = form or ConsentForm.objects.current() or make_consent_form()
    return Consent.objects.create(worker=worker, form=form, **fields)


def consenting_worker(**fields) -> Worker:
    """A worker who agreed to the form in force."""
    worker = make_worker(**fields)
    make_consent(worker)
    return worker


def make_hit_type(**fields) -> HITType:
    defaults = {"title": "Is this statement harmful?", "description": "Read a text and answer nine questions."}
    return HITType.objects.create(**defaults | fields)


def make_hit(text: str | None = None, **fields) -> HIT:
    """A HIT of a new statement, by default in a study of its own."""
    hit_type = fields.pop("hit_type", None) or make_hit_type()
    generation = fields.pop("generation", None) or make_generation(text)
    defaults = {
        "max_assignments": hit_type.max_assignments,
        "expires_at": timezone.now() + timedelta(days=30),
    }
    return HIT.objects.create(hit_type=hit_type, generation=generation, **defaults | fields)


def make_assignment(hit: HIT | None = None, worker: Worker | None = None, **fields) -> Assignment:
    """An assignment stored as it is, past the acts; by default an open one of a new worker."""
    worker = worker or consenting_worker()
    consent = fields.pop("consent", None) or worker.consents.first()
    hit = hit or make_hit()
    defaults = {"deadline": timezone.now() + timedelta(minutes=30), "reward": hit.hit_type.reward}
    return Assignment.objects.create(hit=hit, worker=worker, consent=consent, **defaults | fields)


def accept(worker: Worker | None = None, *, hit_type: HITType | None = None, **options) -> Assignment:
    """What the worker, by default a new one, is given next: of a study, or of the first one that has something."""
    worker = worker or consenting_worker()
    with_work = HIT.objects.open_for(worker).order_by("hit_type").values_list("hit_type_id", flat=True)
    hit_type_id = hit_type.pk if hit_type else with_work.first() or HITType.objects.values_list("pk", flat=True).last()
    return assigning.accept_next(worker=worker, hit_type_id=hit_type_id or make_hit_type().pk, **options)


def lapse(assignment: Assignment) -> Assignment:
    """Let an assignment's deadline be over since an hour."""
    now = timezone.now()
    Assignment.objects.filter(pk=assignment.pk).update(
        accepted_at=now - timedelta(hours=2), deadline=now - timedelta(hours=1)
    )
    assignment.refresh_from_db()
    return assignment


def answers(**changes) -> dict:
    """The nine answers of somebody who read a harmless statement."""
    return {
        "human_or_ai": "ai",
        "harmful_if_ai": 1,
        "harmful_if_human": 2,
        "pos_stereo": "no",
        "harmful_intent": 1,
        "lewd": "no",
        "which_group": "directly",
        "group_framing": "none",
        "fact_or_opinion": "factual",
    } | changes


def log_in(client, worker: Worker | None = None) -> Worker:
    """Let a browser come in by an invite link of the worker, by default a new one with consent."""
    worker = worker or consenting_worker()
    invitation = worker.invitations.create()
    response = client.get(inviting.link(invitation).removeprefix("http://localhost:8000"))
    assert response.status_code == 302, response.content
    return worker


def make_evaluation_set(*rows: tuple, **fields) -> EvaluationSet:
    """A test set from a file: a row a text, as (is_toxic, group, functionality), the latter two if wanted."""
    rows = rows or ((True, "women"), (False, "women"), (True, "asian"), (False, "asian"))
    number = next(numbers)
    defaults = {"name": f"test-set-{number}", "file_name": "texts.csv", "sha256": f"{number:064x}"}
    counts = {"texts_count": len(rows), "toxic_count": sum(bool(row[0]) for row in rows)}
    evaluation_set = EvaluationSet.objects.create(**defaults | counts | fields)
    EvaluationText.objects.bulk_create(
        EvaluationText(
            evaluation_set=evaluation_set, index=index, text=f"text {index} of the file is about the weather",
            **dict(zip(("is_toxic", "group", "functionality"), row, strict=False)),
        )
        for index, row in enumerate(rows, 1)
    )  # fmt: skip
    return evaluation_set


def make_evaluation(
    test_set: EvaluationSet | HumanvalSet | None = None, probs=None, *, reader: TextReader | None = None, **fields
) -> Evaluation:
    """An evaluation, by default on a new test set: queued, or with ``probs``, one a text in their order, finished."""
    test_set = test_set or make_evaluation_set()
    is_humanval = isinstance(test_set, HumanvalSet)
    fields["humanval_set" if is_humanval else "evaluation_set"] = test_set
    of_set = test_set.statements.order_by("generation_id") if is_humanval else test_set.texts.order_by("index")
    ids = list(of_set.values_list("generation_id" if is_humanval else "pk", flat=True))
    if probs is None:
        return Evaluation.objects.create(**{"model": "toy classifier", "reader": reader, "texts": len(ids)} | fields)
    fields = {"model": reader.name if reader else f"classifier {next(numbers)}"} | fields
    options = {"precision": fields["precision"]} if "precision" in fields else {}
    reader = reader or make_reader(ReaderKind.CLASSIFIER, name=fields["model"], **options)
    scored, of = (ToxicityScore, "generation_id") if is_humanval else (EvaluationScore, "text_id")
    scored.objects.bulk_create(
        scored(reader=reader, toxic_prob=prob, **{of: pk}) for pk, prob in zip(ids, probs, strict=True)
    )
    done = {"reader": reader, "texts": len(ids), "scored": len(ids), "finished_at": timezone.now()}
    return Evaluation.objects.create(**done | fields)


def make_trained_classifier(
    name: str | None = None, *, trained_on=(), finished: bool = True, **fields
) -> TrainedClassifier:
    """A classifier with the statements it was trained on, their labels the prompts': finished, or as ordered."""
    number = next(numbers)
    defaults = {"name": name or f"classifier-{number}", "base": "all-minilm-l6-v2"}
    if finished:
        defaults |= {"revision": f"{number:064x}", "data_digest": f"{number:064x}", "finished_at": timezone.now()}
    classifier = TrainedClassifier.objects.create(**defaults | fields)
    TrainingStatement.objects.bulk_create(
        TrainingStatement(
            classifier=classifier, generation=generation, part=TrainingPart.TRAIN,
            is_toxic=generation.label == Label.TOXIC,
        )
        for generation in trained_on
    )  # fmt: skip
    return classifier
