import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { filesOf } from '../../../infra/exported/task-source.ts';
import { downloadIn, neededDownload } from '../../../infra/harbor/downloads.ts';
import { userSecondsUntil } from '../../helpers/user-seconds.ts';

const near = ['db', 'api.example.com'];
const found = (script: string): string | null => {
  const download = downloadIn(script, near);
  return download === null ? null : `${download.line}: ${download.text}`;
};

describe('a command that downloads', () => {
  it('is found by its program and its arguments', () => {
    for (const line of [
      'pip install pytest',
      'python3 -m pip install -q pytest==8.4.1',
      '/usr/bin/pip3 install --find-links /wheels pytest',
      'uvx -p 3.13 -w pytest==8.4.1 pytest /tests/test_outputs.py -rA',
      'uv pip install --system pytest',
      'apt-get update',
      'DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends curl',
      'apk add --no-cache curl',
      'curl -LsSf https://astral.sh/uv/0.9.5/install.sh',
      'wget -q "https://data.example.org/$NAME.zip"',
      'git clone --depth 1 -b main https://b.example/c',
      'git clone git@b.example:c',
      'npm install --no-audit jest',
      'npx --yes jest',
      'cargo install ripgrep',
      'go install gotest.tools/gotestsum@latest',
      'gem install rspec',
      'conda install -y numpy',
      'python3.12 -m pip install pytest',
      'pip3.11 install pytest',
      'python3 -I -m pip install pytest',
      'python3 -W ignore -m pip install pytest',
      'python3 -mpip install pytest',
      'python3 -Im pip install pytest',
      'python -m playwright install chromium',
      'playwright install --with-deps',
      'pip --index-url https://pypi.example.org/simple install pytest',
      'uv --quiet pip install pytest',
      'apt-get -o Acquire::Retries=3 install -y curl',
      'git -C /app -c a.b=c fetch https://b.example/c',
      'cpanm --notest Test::More',
      'uv run --with pytest pytest',
      'poetry add pytest',
      'bundle add rspec',
      'npm install jest',
      'uv add pytest',
    ])
      assert.equal(found(`#!/bin/bash\nset -e\n${line}\n`), `3: ${line}`);
  });

  it('is shown in one line, and is found in a time that grows with the length of the script', async () => {
    assert.equal(found('pip install \\\n   one\\\n\n'), '1: pip install one');
    const long = [' '.repeat(100_000), '\n'.repeat(100_000), ' \\\n'.repeat(50_000), 'c'.repeat(100_000)];
    const seconds = await userSecondsUntil(async () => {
      for (const run of long) {
        for (const script of [
          `echo "a${run}b"`,
          `echo a${run}b`,
          `sh -${run}! b`,
          `[ ${run}b ] && x`,
          `$(${run}`,
          `<<A${run}`,
        ])
          assert.equal(found(`${script}\npip list`), null);
      }
    });
    assert.ok(seconds < 30, `expected time that grows with the length of the script, got ${seconds} s`);
  });

  it('is, in the build of an image alone, one that installs what its project locks', () => {
    for (const line of [
      'uv run pytest /tests',
      'npm ci',
      'yarn',
      'go mod download',
      'uv --directory /app sync',
      'npm --prefix /app ci',
      'pnpm -C /app install',
      'pnpm -w install',
      'yarn --cwd /app install',
      'yarn --cwd /app',
      'cpanm --installdeps .',
      'dotnet restore app.sln',
      'uv run --frozen pytest -x --with-doctest',
      'uv run pytest --with x',
      'uv sync --frozen',
      'poetry install',
      'bundle install',
      'npm install',
      'bun install',
      'composer install',
      'cargo fetch',
    ]) {
      assert.equal(found(`set -e\n${line}\n`), null, line);
      assert.equal(downloadIn(line, near, 'build')?.text, line);
    }
    for (const line of [
      'uv run --offline pytest',
      'bundle install --local',
      'npm ci --offline',
      'uv run --no-sync pytest',
    ])
      assert.equal(downloadIn(line, near, 'build'), null);
  });

  it('is not one that finds all in its sandbox', () => {
    for (const line of [
      'pip install --no-index --find-links /wheels pytest',
      'PIP_NO_INDEX=1 pip install pytest',
      'pip install -e . --no-deps --no-build-isolation',
      "pip install -e '.[test]' --verbose",
      'pip install /wheels/pytest-8.4.1-py3-none-any.whl',
      'pip list',
      'uv run --offline pytest',
      'uv run --no-sync pytest',
      'apt list --installed',
      'apt-get clean',
      'apt-get install -y ./local.deb',
      'npm test',
      'npm run install-check',
      'npm ci --offline',
      'npx jest',
      'yarn test',
      'cargo build --release',
      'python3 install.py -m pip install pytest',
      "python3 -c 'import pip' -m pip install pytest",
      'python3 -m pytest --install -m slow',
      'npm --prefix /app test',
      'pip --proxy install list',
      'cpanm ./local.tar.gz',
      'dotnet test',
      'cargo install --path .',
      'go install ./...',
      'go test ./...',
      'curl http://localhost:8080/health',
      'curl -s "http://127.0.0.1:5000/a?b=https://c.example"',
      'curl http://[::1]:80/',
      'curl http://db:5432/',
      'curl https://api.example.com/v1',
      'curl "http://$HOST:8080/"',
      'curl --unix-socket /run/a.sock http://a.example/',
      'wget -q file:///srv/a',
      'git clone /srv/c work',
      'git clone --depth 1 "$REPOSITORY"',
      'git fetch origin',
    ])
      assert.equal(found(line), null, line);
  });

  it('is not one that only a comment or a text has', () => {
    for (const script of [
      '# pip install pytest',
      'ls # then curl https://a.example',
      'echo "run: pip install pytest"',
      "printf '%s\\n' 'curl https://a.example'; ls",
      'echo "a\ncurl https://a.example\n"',
      'cat >install.sh <<EOF\npip install pytest\nEOF\nls',
      "cat <<-'END' | grep x\n\tcurl https://a.example\n\tEND\nls",
      'grep -q "apt-get install" Dockerfile',
      'test "$(cat curl)" = "https://a.example"',
      'python3 -c \'import os; print("pip install")\'',
    ])
      assert.equal(found(script), null, script);
  });

  it('is found wherever the shell runs it', () => {
    for (const [script, expected] of [
      ['cd /tmp && pip install pytest && pytest', '1: pip install pytest'],
      ['ls; (pip install pytest)', '1: pip install pytest'],
      ['install() {\n  pip install pytest\n}\ninstall', '2: pip install pytest'],
      ['curl -LsSf https://a.example/install.sh | sh', '1: curl -LsSf https://a.example/install.sh'],
      ['sudo -u root timeout -k 5 60 apt-get update', '1: sudo -u root timeout -k 5 60 apt-get update'],
      ['if [ "$A" = b ]; then\n pip install pytest\nfi', '2: pip install pytest'],
      ['if ! pip install pytest; then exit 1; fi', '1: pip install pytest'],
      ['pip install pytest >/dev/null 2>&1', '1: pip install pytest'],
      ['KEY=$(curl -s https://a.example/key)', '1: curl -s https://a.example/key'],
      ['bash -lc "cd x && npm install y"', '1: npm install y'],
      ['bash -e <<EOF\n\npip install pytest\nEOF', '3: pip install pytest'],
      ['apt-get \\\n  -qq \\\n  update', '1: apt-get -qq update'],
      ['cat <<EOF\ntext\nEOF\npip install pytest', '4: pip install pytest'],
      ['pip install pytest || exit 1', '1: pip install pytest'],
      ['pip install pytest || pip install --user pytest', '1: pip install pytest'],
      ['for p in a b; do pip install $p; done', '1: pip install $p'],
      ['if [ -f go.mod ]; then\n  go get x\nfi', '2: go get x'],
      ['if [ -z "$SKIP" ]; then npm install y; fi', '1: npm install y'],
      ['if command -v apt-get >/dev/null; then apt-get update; fi', '1: apt-get update'],
      ['if ! command -v pytest; then ls; else pip install pytest; fi', '1: pip install pytest'],
      ['if command -v jq; then ls; elif [ $A = b ]; then apt-get update; fi', '1: apt-get update'],
    ] as const)
      assert.equal(found(script), expected, script);
  });

  it('is not one that the script does without', () => {
    for (const script of [
      'pip install pytest || true',
      'pip install pytest 2>/dev/null || :',
      'apt-get update && apt-get install -y curl || echo "no network"',
      '{ apt-get update; apt-get install -y curl; } || true',
      'curl -s https://a.example/x | sh || true',
      'command -v uv || pip install uv',
      'which uv >/dev/null 2>&1 || { apt-get update && curl -L https://a.example | sh; }',
      'command -v curl || (apt-get update; apt-get install -y curl)',
      'if ! command -v uv >/dev/null; then\n  curl -L https://a.example | sh\nfi',
      'if python3 -c "import pytest"; then\n  ls\nelse\n  pip install pytest\nfi',
      'if [ ! -f /usr/bin/jq ]; then apt-get install -y jq; fi',
      'if [ -z "$(command -v jq)" ]; then apt-get install -y jq; fi',
      'if command -v jq; then\n  ls\nelif ! which python3; then\n  apt-get install -y python3\nfi',
      'python3 -c "import pytest" || pip install pytest',
      '[ -d node_modules ] || npm install y',
      '[ ! -d node_modules ] && npm install y',
      'test ! -d node_modules && (cd app && npm install y)',
      '! command -v uv && pip install uv',
      'pip install pytest || echo none && ls',
      'pip install pytest || echo none && exit 0',
    ])
      assert.equal(found(script), null, script);
    assert.equal(found('command -v uv || pip install uv\npip install pytest'), '2: pip install pytest');
    for (const end of ['exit 1', 'return 1', 'false'])
      assert.equal(found(`pip install pytest || echo failed && ${end}`), '1: pip install pytest');
    assert.equal(found('[ -d app ] && npm install jest'), '1: npm install jest');
    assert.equal(found('[ ! -d node_modules ] && ls\nnpm install jest'), '2: npm install jest');
    assert.equal(found('if ! command -v uv; then pip install uv; fi\nuvx pytest'), '2: uvx pytest');
  });
});

describe('the tests of a task', () => {
  const begin = { workdir: filesOf({ 'setup.sh': 'npm install x\n' }) };
  const around = { setup: ['true', 'cd a && pip install x'], near };
  const tests = filesOf({
    'test.sh': 'source "$TESTS/setup.sh"\npytest\n',
    'setup.sh': 'ls\npip install pytest\n',
    'unused.sh': 'curl https://a.example\n',
    'notes.txt': 'pip install pytest\n',
  });
  const idle = new Map([...tests].filter(([path]) => path !== 'setup.sh'));

  it('download if a script does that they run', () => {
    assert.equal(neededDownload({ tests, begin }, around), 'tests/setup.sh:2: pip install pytest');
    assert.equal(neededDownload({ tests: idle, begin: null }, { setup: [], near }), null);
  });

  it('download if the set-up before them does', () => {
    const setUp = 'set-up, which never has a network:';
    assert.equal(neededDownload({ tests: idle, begin }, around), `${setUp} setup.sh:1: npm install x`);
    assert.equal(neededDownload({ tests: idle, begin: null }, around), `${setUp} pip install x`);
  });
});
