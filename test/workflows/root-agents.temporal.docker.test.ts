import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { rewarding } from '../helpers/tasks/features/feature-task.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { environment, stepsTask } from '../helpers/tasks/task-steps.ts';

describe('tasks whose agent is root, in Docker,', () => {
  let rollouts: Rollouts;
  before(async () => {
    rollouts = await startRollouts((home) => ({
      taskRoots: [join(home, 'tasks')],
      provider: createDockerProvider({ stack: 'test-stack' }),
    }));
  });
  after(() => rollouts?.close());

  const removed = { sh: '/bin/sh /usr/bin/dash', tar: '/bin/tar /usr/bin/tar' } as const;
  for (const [program, paths] of Object.entries(removed)) {
    it(`are scored if the agent removes ${program} from its sandbox`, async () => {
      const results = ['fresh', 'same', 'snapshot'].map(async (way) => {
        const toml = `[agent]\nuser = "root"\n${environment}[grading]\nsandbox = "${way}"\n`;
        const files = { toml, solve: `rm -f ${paths}`, test: rewarding('false') };
        const task = await writeHarborTask(join(rollouts.home, 'tasks'), `no-${program}-${way}`, files);
        return rollouts.run(`no-${program}-${way}`, { task, agent: 'oracle', sandbox: 'docker' });
      });
      for (const result of await Promise.all(results)) {
        const { outcome, reward, epochs } = result;
        assert.deepEqual([outcome, reward, epochs], ['scored', 0, 1], JSON.stringify(result));
      }
    });
  }

  it('count a step as 0 whose sandbox the agent has broken before', async () => {
    const step = { solve: 'rm -f /bin/sh /usr/bin/dash', test: 'echo 1' };
    const toml = `[agent]\nuser = "root"\n${environment}`;
    const files = stepsTask({ toml, steps: { first: step, second: step } });
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'broken-steps', files);
    const result = await rollouts.run('broken-steps', { task, agent: 'oracle', sandbox: 'docker' });
    assert.deepEqual([result.outcome, result.reward, result.epochs], ['scored', 0.5, 1], JSON.stringify(result));
    assert.deepEqual(
      result.steps?.map(({ stop }) => stop),
      ['submitted', null],
    );
  });

  it("place nothing but artifacts beside the tests, whatever the agent's own tar says", async () => {
    const hostile = `import io, tarfile
tar = tarfile.open('/hostile.tar', 'w')
cheat = b'echo 1 >/logs/verifier/reward.txt'
def add(name, data=cheat, link=None):
    entry = tarfile.TarInfo(name)
    if link: entry.type, entry.linkname = tarfile.SYMTYPE, link
    else: entry.size = len(data)
    tar.addfile(entry, None if link else io.BytesIO(data))
add('./tmp/out/kept', b'kept')
for name in ['./tests/test.sh', './tmp/out/../../tests/test.sh', '/tests/test.sh']: add(name)
add('./tmp/out/link', link='/tests')
add('./tmp/out/link/test.sh')
add('./tmp/out/inner', link='../../tmp/out/../../tests')
add('./tmp/out/inner/test.sh')
tar.close()
`;
    const files = {
      toml: `artifacts = ["/tmp/out"]\n[agent]\nuser = "root"\n${environment}[verifier]\nenvironment_mode = "separate"\n`,
      solve: `python3 -c "$(cat <<'E'\n${hostile}E\n)" && printf '#!/bin/sh\\nexec cat /hostile.tar\\n' >"$(command -v tar)"`,
      test: '[ -f /tmp/out/kept ] && [ ! -L /tmp/out/link ] && echo 0.5 >/logs/verifier/reward.txt\n',
      others: { 'tests/Dockerfile': 'FROM temper-tasks:bookworm\nCOPY . /tests\n' },
    };
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'hostile-tar', files);
    const result = await rollouts.run('hostile-tar', { task, agent: 'oracle', sandbox: 'docker' });
    assert.deepEqual([result.outcome, result.reward], ['scored', 0.5], JSON.stringify(result));
  });
});
