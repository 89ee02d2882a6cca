import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import Docker from 'dockerode';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { builtTags, pruneBuilt } from '../helpers/sandbox/built-images.ts';
import { startRegistry } from '../helpers/sandbox/registry.ts';
import { answerTest, writeHarborTask } from '../helpers/tasks/harbor-task.ts';

const docker = new Docker();
const stack = 'test-stack';
/** The mark that keeps these builds apart from those of other tests. */
const mark = `built-${process.pid}`;
const toml = 'version = "1.0"\n[environment]\nmemory_mb = 512\nstorage_mb = 256\n';

describe('a task whose image is a Dockerfile', () => {
  let rollouts: Rollouts;
  let root: string;
  before(async () => {
    rollouts = await startRollouts((home) => ({
      taskRoots: [join(home, 'tasks')],
      provider: createDockerProvider({ stack }),
    }));
    root = join(rollouts.home, 'tasks');
  });
  after(async () => {
    await rollouts?.close();
    for (const tag of await builtTags(docker, mark)) await docker.getImage(tag).remove({ force: true });
    await pruneBuilt(docker, stack);
  });

  it('is built before its rollouts begin, and both of their sandboxes are made from it', async () => {
    const dockerfile = `FROM temper-tasks:bookworm
ENV TEST=${mark} ANSWER_FROM=image
WORKDIR /workspace
COPY workspace /workspace
COPY --chmod=755 <<'EOF' /usr/local/bin/make-answer
#!/bin/sh
echo right >/made/answer
EOF
COPY --chmod=755 <<'EOF' /usr/local/bin/start
#!/bin/sh
echo "$@" >/tmp/started
exec "$@"
EOF
ENTRYPOINT ["start"]
RUN --mount=type=cache,target=/cache <<EOF
set -e
mkdir /made
make-answer
EOF
RUN cat >/tmp/read <<'END' && sh /tmp/read
chmod -R a+rX /made "$PWD"
END
RUN <<'PY'
#!/usr/bin/env python3
open('/made/python', 'w').write('$HOME')
PY
HEALTHCHECK --interval=1s CMD touch /tmp/checked
`;
    const task = await writeHarborTask(root, 'built', {
      toml,
      workspace: { 'answer.txt': 'wrong\n', '../Dockerfile': dockerfile },
      solve:
        'cp /made/answer /workspace/answer.txt; test "$ANSWER_FROM" = image && test ! -e /tmp/checked && grep -F \'$HOME\' /made/python && grep "sleep infinity" /tmp/started',
      test: `test -s /made/answer || exit 1\n${answerTest}`,
    });
    const run = (agent: string) => rollouts.run(`built-${agent}`, { task, agent, sandbox: 'docker' });
    const [oracle, nop] = await Promise.all([run('oracle'), run('nop')]);
    assert.deepEqual([oracle.outcome, oracle.reward], ['scored', 1], JSON.stringify(oracle));
    assert.deepEqual([nop.outcome, nop.reward], ['scored', 0], JSON.stringify(nop));
    assert.ok((oracle.stageSeconds.prepareImage ?? 0) > 0);
    assert.equal((await builtTags(docker, mark)).length, 1);
  });

  it('is built from the directory of a terminal-bench task, without its tests and solution', async () => {
    const files = {
      'task.yaml': 'instruction: Sort the names into sorted.txt.\n',
      Dockerfile: `FROM temper-tasks:bookworm\nENV TEST=${mark}\nWORKDIR /app\nCOPY . .\nRUN sort --reverse names >backwards\n`,
      'docker-compose.yaml':
        'services:\n  client:\n    build: .\n    command: sleep infinity\n    environment: {LC_ALL: C}\n    volumes: [".:/app"]\n    deploy: {resources: {limits: {cpus: "1"}}}\n',
      names: 'b\na\n',
      'run-tests.sh':
        'cp "$TEST_DIR/test_outputs.py" backwards && cd "$TEST_DIR" && touch /app/tests/by-tests && python3 -m pytest /app/tests/test_outputs.py -rA\necho "the end"\n',
      'tests/test_outputs.py': `import os
def test_sorted(): assert open("/app/sorted.txt").read() == "a\\nb\\n"
def test_environment(): assert os.environ["LC_ALL"] == "C"
`,
      'solution.sh':
        'test ! -e solution.sh && test ! -e tests && test ! -e run-tests.sh && tac backwards >sorted.txt\n',
    };
    for (const [path, text] of Object.entries(files)) {
      await mkdir(join(root, 'bench/sort', path, '..'), { recursive: true });
      await writeFile(join(root, 'bench/sort', path), text);
    }
    const task = `terminal-bench:${root}/bench#sort`;
    const run = (agent: string) => rollouts.run(`bench-${agent}`, { task, agent, sandbox: 'docker' });
    const [oracle, nop] = await Promise.all([run('oracle'), run('nop')]);
    assert.deepEqual([oracle.outcome, oracle.reward], ['scored', 1], JSON.stringify(oracle));
    assert.deepEqual([nop.outcome, nop.reward], ['scored', 0], JSON.stringify(nop));
  });

  it('ends its rollout with the output of the builder if it cannot be built', async () => {
    const dockerfile = `FROM temper-tasks:bookworm\nENV TEST=${mark}\nRUN echo this is why >&2; exit 7\n`;
    const task = await writeHarborTask(root, 'broken', { toml, workspace: { '../Dockerfile': dockerfile } });
    const { outcome, failure } = await rollouts.run('broken', { task, agent: 'oracle', sandbox: 'docker' });
    assert.deepEqual([outcome, failure?.type, failure?.stage], ['invalid-task', 'BuildFailed', 'prepareImage']);
    const [, digest = ''] = /blob ([0-9a-f]{64})$/.exec(failure?.message ?? '') ?? [];
    assert.match(String(await rollouts.store.get(digest)), /^Step 1\/6[\s\S]*this is why/);
  });
});

it('ends a rollout as an invalid task, naming the image, if the registry does not have it', async () => {
  const rollouts = await startRollouts((home) => ({ taskRoots: [home], provider: createDockerProvider({ stack }) }));
  const registry = await startRegistry();
  try {
    const image = `${registry.address}/nowhere:1`;
    const task = await writeHarborTask(rollouts.home, 'missing', { toml: `${toml}docker_image = "${image}"\n` });
    const { outcome, failure, epochs } = await rollouts.run('missing', { task, agent: 'oracle', sandbox: 'docker' });
    assert.deepEqual([outcome, failure?.type, failure?.stage], ['invalid-task', 'MissingImage', 'prepareImage']);
    assert.match(failure?.message ?? '', new RegExp(image));
    assert.ok(epochs <= 1);
  } finally {
    await registry.close();
    await rollouts.close();
  }
});
