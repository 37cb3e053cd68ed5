"""Generates a client of a server's OpenAPI document and asks by it; writes the answers as JSON.

python read_openapi.py FOLDER CACHE: the folder has openapi.json and server.json, the server's URL,
a user's name and password, a frame's key and a dataset's name.
"""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

folder, cache = Path(sys.argv[1]), Path(sys.argv[2])
tools = Path(sys.executable).parent
cache.mkdir(parents=True, exist_ok=True)
generated = subprocess.run(
    [tools / "openapi-python-client", "generate", "--path", folder / "openapi.json", "--meta",
     "none", "--output-path", cache / "framesift_api", "--fail-on-warning",
     "--config", Path(__file__).with_name("openapi_client.yml")],
    env=os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
    capture_output=True, text=True, check=False,
)  # fmt: skip
if generated.returncode:
    sys.exit(generated.stdout + generated.stderr)
sys.path.insert(0, str(cache))

from framesift_api import AuthenticatedClient  # noqa: E402
from framesift_api.api.datasets import get_dataset_v1_datasets_name_get as get_dataset  # noqa: E402
from framesift_api.api.frames import get_frames_v1_frames_get as get_frames  # noqa: E402
from framesift_api.api.frames import get_image_v1_images_fkey_get as get_image  # noqa: E402
from framesift_api.api.selections import post_selection_v1_selections_post as select  # noqa: E402
from framesift_api.api.spectrum_discover import get_token_auth_v1_token_get as log_in  # noqa: E402
from framesift_api.api.sql import post_sql_v1_sql_post as sql  # noqa: E402
from framesift_api.models import Problem, Question, StatementAt  # noqa: E402

server = json.loads((folder / "server.json").read_text())
login = base64.b64encode(f"{server['user']}:{server['password']}".encode()).decode()
basic = AuthenticatedClient(base_url=server["url"], token=login, prefix="Basic")
token = log_in.sync_detailed(client=basic).headers["X-Auth-Token"]
client = AuthenticatedClient(base_url=server["url"], token=token)

page = get_frames.sync(client=client, range_=["car=0:"], limit=5)
selection = select.sync(client=client, body=Question.from_dict(server["question"]))
dataset = get_dataset.sync(server["dataset"], client=client)
problem = get_dataset.sync_detailed("none", client=client)
assert isinstance(problem.parsed, Problem)
wrong = sql.sync(client=client, body=StatementAt(statement="select car from t_carr"))
assert isinstance(wrong, Problem)
image = get_image.sync(server["fkey"], client=client)
sys.stdout.write(
    json.dumps(
        {
            "page": [frame.to_dict()["fkey"] for frame in page.frames],
            "next": bool(page.next_),
            "count": selection.count,
            "cars": selection.class_pixels.additional_properties["car"],
            "fkeys": [frame["fkey"] for frame in selection.frames],
            "dataset": dataset.to_dict(),
            "problem": [problem.status_code.value, problem.parsed.title, problem.parsed.detail],
            "sqlcode": wrong.sqlcode,
            "wrong": wrong.detail,
            "image": image.payload.read(8).hex(),
        }
    )
)
