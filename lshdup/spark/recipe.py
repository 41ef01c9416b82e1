"""The parameters of a run on Spark, as every worker needs them."""

from dataclasses import dataclass

from lshdup.errors import ParameterError
from lshdup.lsh.band_plan import BandPlan, plan_bands
from lshdup.lsh.sample_plan import SMALL, SamplePlan, plan_samples
from lshdup.params import (
    DEFAULT_FORMATS,
    DEFAULT_MAX_BYTES,
    BandParams,
    FormatLimits,
    PairParams,
    ShingleParams,
    SketchParams,
)

_SHINGLE, _SKETCH, _BANDS, _PAIRS = ShingleParams(), SketchParams(), BandParams(), PairParams()


@dataclass(frozen=True)
class Recipe:
    """The parameters of all stages.

    plan : bands, which find pairs of similarity; or samples of sets, which find pairs of
        containment.
    threshold : least similarity of a pair, between 0 and 1.
    max_bytes : bytes of the largest document that is compared.
    formats : limits for reading office documents.
    """

    shingle: ShingleParams
    sketch: SketchParams
    plan: BandPlan | SamplePlan
    threshold: float
    max_bytes: int = DEFAULT_MAX_BYTES
    formats: FormatLimits = DEFAULT_FORMATS


def make_recipe(
    shingle: ShingleParams = _SHINGLE,
    sketch: SketchParams = _SKETCH,
    band: BandParams = _BANDS,
    pair: PairParams = _PAIRS,
) -> Recipe:
    """Plan the bands or the samples, and return the parameters of a run on Spark.

    Raises ParameterError for options that only the local engine has, or if no plan of bands keeps
    the promised recall.
    """
    if sketch.scheme == "linear":
        message = "--scheme linear needs the whole collection at once, which Spark has not"
        raise ParameterError(message, "use fast or classic")
    if pair.verify != "exact":
        message = "on Spark every pair is verified exactly"
        raise ParameterError(message, "leave --verify out")
    plan: BandPlan | SamplePlan
    if pair.measure == "containment":
        plan = plan_samples(SMALL, band.threshold, band.recall)
    else:
        plan = plan_bands(sketch.perms, band)
    return Recipe(shingle, sketch, plan, band.threshold)
