"""Estimator and model of ``pyspark.ml``, for its pipelines, tuning and storage.

    from traceless.sources.spark_ml import SparkEstimator

    pipeline = Pipeline(stages=[assembler, SparkEstimator(LSSVC(), featuresCol="features")])
    model = pipeline.fit(df)            # model.transform(df) adds columns; model.write().save(path)

Needs pyspark when it is imported.
"""

from __future__ import annotations

from typing import Any

from pyspark.ml.base import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasLabelCol,
    HasPredictionCol,
    HasProbabilityCol,
    HasRawPredictionCol,
    HasWeightCol,
)
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)

from traceless.sources.spark import from_spark
from traceless.sources.spark_answers import on_spark

__all__ = ["SparkEstimator", "SparkModel"]


class _Columns(
    HasFeaturesCol,
    HasLabelCol,
    HasWeightCol,
    HasPredictionCol,
    HasProbabilityCol,
    HasRawPredictionCol,
    MLWritable,
    MLReadable,
):
    """The names of columns, as Spark's own estimators have them.

    Probabilities and scores are added if the columns for them are named.
    """

    traceless: Any  # the estimator

    def write(self) -> _Writer:
        """To save it: ``write().overwrite().save(path)``."""
        return _Writer(self)

    @classmethod
    def read(cls) -> _Reader:
        """To load it: ``read().load(path)``."""
        return _Reader(cls)

    def _named(self, param: Any) -> str | None:
        return self.getOrDefault(param) if self.isSet(param) else None


class SparkEstimator(Estimator, _Columns):
    """An estimator of ``pyspark.ml`` that fits an LSSVC or LSSVR.

    Parameters
    ----------
    estimator : LSSVC or LSSVR
    featuresCol : str, default="features"
        One column of vectors or arrays.
    labelCol, predictionCol : str
        By default "label" and "prediction".
    weightCol, probabilityCol, rawPredictionCol : str, optional
    rho : float, optional
        In place of the estimator's own: a ``CrossValidator`` may choose it.
    """

    rho: Any = Param(
        Params._dummy(),
        "rho",
        "strength of the penalty, in place of the estimator's own",
        typeConverter=TypeConverters.toFloat,
    )

    def __init__(self, estimator: Any = None, **params: Any) -> None:
        super().__init__()
        self.traceless = estimator
        self._set(**{name: value for name, value in params.items() if value is not None})

    def _fit(self, dataset: Any) -> SparkModel:
        from sklearn.base import clone

        features, label = self.getFeaturesCol(), self.getLabelCol()
        weight = self._named(self.weightCol)
        source = from_spark(dataset, label, columns=[features], sample_weight=weight)
        estimator = clone(self.traceless)
        if self.isSet(self.rho):
            estimator.set_params(rho=self.getOrDefault(self.rho))
        model = SparkModel(estimator.fit(source))
        return self._copyValues(model)  # type: ignore[no-any-return]


class SparkModel(Model, _Columns):
    """What `SparkEstimator.fit` returns: ``transform`` adds the answers of ``traceless``.

    They have the types that Spark's evaluators ask for: numbers are doubles, several are vectors.

    Attributes
    ----------
    traceless : LSSVC or LSSVR
        The fitted model itself, with digest, forget and everything else.
    """

    def __init__(self, model: Any = None) -> None:
        super().__init__()
        self.traceless = model

    def _transform(self, dataset: Any) -> Any:
        names = {
            "prediction": self.getPredictionCol(),
            "scores": self._named(self.rawPredictionCol),
            "probability": self._named(self.probabilityCol),
        }
        answered = on_spark(self.traceless, dataset, [self.getFeaturesCol()], **names)
        for name in filter(None, names.values()):
            answered = answered.withColumn(name, _as_sparks_own(answered, name))
        return answered


class _Writer(MLWriter):
    """Parameters as Spark writes them, and beside them the file of the model in a table."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:  # noqa: N802
        DefaultParamsWriter.saveMetadata(self._instance, path, self.sparkSession)
        content = _content(self._instance.traceless)
        table = self.sparkSession.createDataFrame([(content,)], "model binary")
        table.coalesce(1).write.parquet(f"{path}/traceless")


class _Reader(MLReader):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self._kind = kind

    def load(self, path: str) -> Any:
        said = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        found = self._kind()
        found._resetUid(said["uid"])
        DefaultParamsReader.getAndSetParams(found, said)
        row = self.sparkSession.read.parquet(f"{path}/traceless").first()
        found.traceless = _loaded(bytes(row["model"]))
        return found


def _as_sparks_own(answered: Any, name: str) -> Any:
    """A column of answers in the type that Spark's own models give; text stays text."""
    from pyspark.ml.functions import array_to_vector

    kind, column = answered.schema[name].dataType.typeName(), answered[name]
    if kind == "array":
        return array_to_vector(column)
    return column.cast("double") if kind == "long" else column


def _content(model: Any) -> bytes:
    """The file of a model; of one that is not fitted, its parameters alone."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        model.save(file)
        return file.read_bytes()


def _loaded(content: bytes) -> Any:
    import tempfile
    from pathlib import Path

    import traceless

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        file.write_bytes(content)
        return traceless.load(file)
