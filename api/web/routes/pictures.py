"""/pictures: the pictures of /v1, for a browser's session."""

from api.http.routes.frames import get_image, get_label, get_overlay
from api.http.routes.predictions import get_prediction
from api.http.routing import Router
from api.http.rules import READ, Api

router = Router(api=Api.WEB, prefix="/pictures", include_in_schema=False)

_RULE = READ.but(work="picture", compressed=False)

router.get("/images/{fkey:path}", rule=_RULE)(get_image)
router.get("/labels/{fkey:path}", rule=_RULE)(get_label)
router.get("/overlays/{fkey:path}", rule=_RULE)(get_overlay)
router.get("/predictions/{fkey:path}", rule=_RULE)(get_prediction)
