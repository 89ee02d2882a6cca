import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { type HarborTaskFiles, writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { removeServiceImages, serviceTask, tasksWithServices } from '../helpers/tasks/service-tasks.ts';
import { environment, stepsTask } from '../helpers/tasks/task-steps.ts';

const rewarding = (condition: string): string =>
  `echo 0 >/logs/verifier/reward.txt\n${condition} && echo 1 >/logs/verifier/reward.txt\nexit 0\n`;

/** Prints the memory of a container, by either version of control groups. */
const memory = '(cat /sys/fs/cgroup/memory.max || cat /sys/fs/cgroup/memory/memory.limit_in_bytes) 2>/dev/null';

/** One task for each feature of Harbor's format: its reference solution must score 1, and doing nothing 0. */
const harborTasks: Readonly<Record<string, HarborTaskFiles>> = {
  'an agent that is root': {
    toml: `[agent]\nuser = "root"\n${environment}`,
    solve:
      'useradd -m builder && chown builder answer.txt && su builder -c "id -un" >answer.txt && touch /etc/made && ls /etc/made >>answer.txt',
    test: rewarding('grep -qx builder answer.txt && grep -qx /etc/made answer.txt'),
  },
  'an agent that is root and all that it changed': {
    toml: `[agent]\nuser = "root"\n${environment}[grading]\nsandbox = "snapshot"\n`,
    solve:
      'useradd -m builder && su builder -c "echo mine >~/own" && echo set >/etc/made && echo "export A=1" >>~/.bashrc',
    test: rewarding(
      '[ "$(stat -c %U /home/builder/own)" = builder ] && grep -qx set /etc/made && grep -qx "export A=1" /root/.bashrc',
    ),
  },
  'a health check': {
    toml: `${environment}healthcheck = { command = "echo >>/tmp/tries; test $(wc -l </tmp/tries) -ge 3", interval_sec = 0.1 }\n`,
    solve: 'wc -l </tmp/tries >answer.txt',
    test: rewarding('[ "$(cat answer.txt)" -ge 3 ]'),
  },
  'a service that its image starts': {
    toml: `${environment}entrypoint = ["python3", "-m", "http.server", "8124", "--bind", "127.0.0.1", "--directory", "/usr/share"]
healthcheck = { command = "python3 -c 'import urllib.request as r; r.urlopen(\\"http://127.0.0.1:8124\\")'", interval_sec = 0.2, retries = 100 }\n`,
    solve: `python3 -c 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:8124").status)' >answer.txt`,
    test: rewarding(
      `[ "$(cat answer.txt)" = "$(python3 -c 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:8124").status)')" ]`,
    ),
  },
  ...tasksWithServices({ environment, rewarding }),
  'variables of the host': {
    toml: `${environment}env = { NAME = "\${TASK_NAME}", MODEL = "\${TASK_MODEL:-small}" }\n[verifier.env]\nTOLD = "\${TASK_NAME}"\n`,
    solve: 'echo "$NAME $MODEL" >answer.txt',
    test: rewarding('[ "$(cat answer.txt)" = "Ada small" ] && [ "$TOLD" = Ada ]'),
  },
  'what is collected from a service that the agent started': {
    toml: `${environment}[verifier]\ncollect = [{ command = "python3 -c 'import urllib.request as r; print(r.urlopen(\\"http://127.0.0.1:8125/kept\\").read().decode())' >collected.txt", timeout_sec = 20.0 }, { command = "exit 3" }]\n`,
    solve: `mkdir -p /tmp/served && echo here >/tmp/served/kept
setsid python3 -m http.server 8125 --bind 127.0.0.1 --directory /tmp/served </dev/null >/dev/null 2>&1 &
until python3 -c 'import urllib.request as r; r.urlopen("http://127.0.0.1:8125")' 2>/dev/null; do sleep 0.1; done
`,
    test: rewarding('grep -qx here collected.txt'),
  },
  'tests in an image of their own, which get the artifacts alone': {
    toml: `artifacts = ["/tmp/out", "kept/answer.txt"]
[environment]
docker_image = "temper-tasks:bookworm"
memory_mb = 512
storage_mb = 256
[verifier.environment]
memory_mb = 300
env = { OF = "tests" }
healthcheck = { command = "test -f /tests/only-there", interval_sec = 0.1 }
`,
    solve: `mkdir -p /tmp/out/deep kept && echo right >/tmp/out/deep/answer && ln -s deep/answer /tmp/out/link
echo noted >/logs/artifacts/note && echo right >kept/answer.txt && echo no >left.txt && ln -s /etc/passwd /tmp/out/away`,
    test: rewarding(`[ "$(cat /tmp/out/link)" = right ] && [ "$OF" = tests ] && grep -qx noted /logs/artifacts/note &&
  [ "$(pwd)" = /judged ] && [ ! -e /tmp/out/away ] && [ ! -e /tmp/out/stale ] &&
  [ "$(cat /workspace/kept/answer.txt)" = right ] && [ ! -e /workspace/left.txt ] && [ ! -e /workspace/answer.txt ]`),
    others: {
      'tests/Dockerfile':
        'FROM temper-tasks:bookworm\nWORKDIR /judged\nCOPY . /tests\nRUN touch /tests/only-there && mkdir -p /tmp/out && touch /tmp/out/stale\n',
    },
  },
  'limits of its own for the tests': {
    toml: `${environment}[verifier.environment]\nmemory_mb = 200\n`,
    solve: `${memory} >answer.txt`,
    test: rewarding(`[ "$(cat answer.txt)" = $((512 * 1048576)) ] && [ "$(${memory})" = $((200 * 1048576)) ]`),
  },
  'several steps, of which each finds what the one before installed': {
    ...stepsTask({
      toml: `schema_version = "1.4"\n[agent]\nuser = "root"\n${environment}[grading]\nsandbox = "snapshot"\n`,
      steps: {
        install: {
          solve: 'printf "#!/bin/sh\\necho \\$1 more\\n" >/usr/local/bin/more-of && chmod 755 /usr/local/bin/more-of',
          test: '[ "$(more-of 2)" = "2 more" ] && echo 1 || echo 0',
          fields: 'min_reward = 1.0',
        },
        use: {
          solve: 'more-of "$(cat asked)" >answer.txt',
          test: 'grep -qx "3 more" answer.txt && [ -f /etc/prepared ] && echo 1 || echo 0',
          fields: 'healthcheck = { command = "test -f /etc/prepared" }',
          others: { 'workdir/asked': '3\n', 'workdir/setup.sh': 'touch /etc/prepared\n' },
        },
      },
    }),
  },
};

/** A terminal-bench task whose tests ask for the agent's shell: they need a process that it started. */
const terminalBenchTask: Readonly<Record<string, string>> = {
  'task.yaml': 'instruction: Serve who you are.\nrun_tests_in_same_shell: true\n',
  'docker-compose.yaml': 'services:\n  client:\n    image: temper-tasks:bookworm\n    working_dir: /app\n',
  'run-tests.sh': `echo '== short test summary info =='
if python3 -c 'import urllib.request as r; assert r.urlopen("http://127.0.0.1:80/who").read() == b"0\\n"'
then echo 'PASSED tests::who'; else echo 'FAILED tests::who'; fi
`,
  'solution.sh': `id -u >who
setsid python3 -m http.server 80 --bind 127.0.0.1 </dev/null >/dev/null 2>&1 &
until python3 -c 'import urllib.request as r; r.urlopen("http://127.0.0.1:80/who")' 2>/dev/null; do sleep 0.1; done
`,
  'tests/test_outputs.py': 'def test(): pass\n',
};

describe('the tasks of the formats', () => {
  let rollouts: Rollouts;
  before(async () => {
    rollouts = await startRollouts((home) => ({
      taskRoots: [join(home, 'tasks')],
      taskVariables: { TASK_NAME: 'Ada' },
      provider: createDockerProvider({ stack: 'test-stack' }),
    }));
  });
  after(async () => {
    await rollouts.close();
    await removeServiceImages();
  });

  /** Writes a task of terminal-bench, and returns the directory of its set. */
  async function write(name: string, files: Readonly<Record<string, string>>): Promise<string> {
    const directory = join(rollouts.home, 'tasks', 'terminal-bench', name);
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(directory, path)), { recursive: true });
      await writeFile(join(directory, path), text);
    }
    return dirname(directory);
  }

  async function validate(name: string, task: string): Promise<void> {
    const run = async (agent: 'oracle' | 'nop') => rollouts.run(`${name}-${agent}`, { task, agent, sandbox: 'docker' });
    const [solved, untouched] = await Promise.all([run('oracle'), run('nop')]);
    assert.deepEqual([solved.outcome, solved.reward], ['scored', 1], JSON.stringify(solved));
    assert.deepEqual([untouched.outcome, untouched.reward], ['scored', 0], JSON.stringify(untouched));
  }

  it("of terminal-bench with tests in the agent's shell, and an agent that is root, can be solved", async () => {
    await validate('shell', `terminal-bench:${await write('who', terminalBenchTask)}?user=root#who`);
  });

  it('of terminal-bench with two services beside the client can be solved', async () => {
    await validate('services', `terminal-bench:${await write('told', serviceTask)}#told`);
  });

  for (const [feature, files] of Object.entries(harborTasks)) {
    it(`of Harbor with ${feature} can be solved, and doing nothing fails`, async () => {
      const name = feature.replaceAll(' ', '-');
      await validate(name, await writeHarborTask(join(rollouts.home, 'tasks'), name, files));
    });
  }

  const removed = { sh: '/bin/sh /usr/bin/dash', tar: '/bin/tar /usr/bin/tar' } as const;
  for (const [program, paths] of Object.entries(removed)) {
    it(`are scored if an agent that is root removes ${program} from its sandbox`, async () => {
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
