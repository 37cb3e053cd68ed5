"""The training program: a manifest in, a model and its scores out.

``python -m training.main`` trains, evaluates one shard or predicts; ``python -m
training.merge_scores`` adds the shards up into a report. Nothing else of Framesift imports this
package, and it needs only the leaves pipeline.manifest, ingest.labels.class_list,
ingest.labels.label_image and catalog.errors.
"""
