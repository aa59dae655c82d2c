#!/usr/bin/env bash
# Makes the files of a release in release/, and the documentation in release-site/: `tools/release.sh v0.3.0`.
# A dry run is the same command with the version of the tree. Needs the tools of .ci/tools.txt; helm for the chart.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(python -c 'import re; print(re.search(r"__version__ = \"(.+?)\"", open("chaos/__init__.py").read())[1])')
if [ "${1:-}" != "v$version" ]; then
  echo "no release: the tag is ${1:-missing}, and chaos/__init__.py has version $version" >&2
  exit 64
fi
rm -rf release release-site
mkdir release
awk -v version="${version%.dev*}" '/^## \[/ {on = index($0, "## [" version "]") == 1; next} on' CHANGELOG.md >release/NOTES.md
if ! [ -s release/NOTES.md ]; then
  echo "no release: CHANGELOG.md has no section ${version%.dev*}" >&2
  exit 64
fi
python -m build --outdir release
twine check --strict release/*.whl release/*.tar.gz
python tools/sbom.py "release/nodefall-$version.cdx.json"
if command -v helm >/dev/null; then
  helm lint --strict deploy/helm/nodefall
  helm package deploy/helm/nodefall --destination release --app-version "$version"
elif [ -n "${CI:-}" ]; then
  echo "no release: there is no helm" >&2
  exit 1
else
  echo "skipped: there is no helm, so there is no chart"
fi
python -m venv .release-docs
.release-docs/bin/pip install -q --require-hashes --only-binary :all: -r .ci/requirements.txt
NO_MKDOCS_2_WARNING=1 .release-docs/bin/mkdocs build --strict --quiet --site-dir release-site
rm -rf .release-docs
(cd release && sha256sum -- *.whl *.tar.gz *.cdx.json $(ls -- *.tgz 2>/dev/null) >SHA256SUMS)
