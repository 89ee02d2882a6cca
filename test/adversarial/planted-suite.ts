import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type HarborTask, readHarborTask } from '../../infra/harbor/harbor-task.ts';
import type { Sandbox } from '../../infra/sandbox/sandbox.ts';
import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createPipeline, type Evaluated, type OpenProvider, type Pipeline, type ScriptedAgent } from './pipeline.ts';

/** A directory of the agent's workdir that comes first in the image's PATH, as that of a virtual environment. */
const bin = '/workspace/.venv/bin';
/** Variables by which an image or a task has temper's own programs run a file of the agent, and one that is only read. */
const hooks = {
  ENV: `${bin}/hook`,
  TAR_OPTIONS: `--checkpoint=1 --checkpoint-action=exec=${bin}/hook`,
  GIT_EXEC_PATH: bin,
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'core.fsmonitor',
  GIT_CONFIG_VALUE_0: `${bin}/hook`,
  MARK: `it's "quoted" $HOME`,
} as const;
const quoted = (text: string): string => JSON.stringify(text).replaceAll('$', '\\$');
/** The image of a task with a directory of the agent in its PATH. */
export const plantedImage = `FROM temper-tasks:bookworm
RUN mkdir -p ${bin} /workspace/lib && cp /usr/bin/true ${bin}/project
ENV PATH=${bin}:$PATH FIRST=${bin}
ENV ${Object.entries(hooks)
  .map(([name, value]) => `${name}=${quoted(value)}`)
  .join(' ')}
WORKDIR /workspace
`;

/** Programs that temper starts in a sandbox, and that a task's tests or agents could start as well. */
const names =
  'sh bash env timeout tar git find rm mkdir cat dd setpriv cp mv ls grep sed tail head wc stat chmod mkfifo mktemp readlink dirname sleep tr';
/** A program that notes who runs it, and for ever writes the reward if it may. It then does its work, so that nothing is noticed. */
const planted = `#!/bin/dash
uid=$(/usr/bin/id -u); : >"/tmp/ran-$uid-\${0##*/}"
if [ -w /logs/verifier ]; then
  { while :; do echo 1 >/logs/verifier/reward.txt; /bin/sleep 0.02; done; } </dev/null >/dev/null 2>&1 &
fi
[ ! -x "/usr/bin/\${0##*/}" ] || exec "/usr/bin/\${0##*/}" "$@"
`;
/** Leaves the work undone. */
const plant = `mkdir -p ${bin}
cat >/tmp/planted <<'END'
${planted}END
for name in ${names} hook; do /bin/cp /tmp/planted ${bin}/$name; /bin/chmod 755 ${bin}/$name; done
`;
const solve = `mkdir -p ${bin}; echo done >work; printf '#!/bin/sh\\necho mine\\n' >${bin}/mine; chmod 755 ${bin}/mine`;

/** Tests with programs of their own choice. They need the environment of the image and the task. */
const test = `[ -z "$FIRST" ] || case $PATH in "$FIRST":*) ;; *) exit 1 ;; esac
PATH=/usr/bin:/bin
echo 0 >/logs/verifier/reward.txt
[ "$MARK" = '${hooks.MARK.replaceAll("'", `'\\''`)}' ] && grep -q done work && echo 1 >/logs/verifier/reward.txt
sleep 0.2
`;

function task(image: string, grading: string, env: Readonly<Record<string, string>>): HarborTask {
  const ofTask = Object.entries(env).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`);
  const toml = `[environment]\ndocker_image = "${image}"\nstorage_mb = 256\ncpus = 1\n[environment.env]\n${ofTask.join('')}[grading]\n${grading}`;
  return readHarborTask(
    treeOf({
      'task.toml': toml,
      'instruction.md': 'Do it.\n',
      'environment/workspace/work': 'open\n',
      'tests/test.sh': test,
    }),
  );
}

/** The image of a task whose shells first run a file of the agent, and an agent that writes the reward there. */
export const hookingImage = 'FROM temper-tasks:bookworm\nENV BASH_ENV=/workspace/hook.sh MARK=hooked\n';
const hook = { files: { 'hook.sh': '[ ! -w /logs/verifier ] || trap "echo 1 >/logs/verifier/reward.txt" EXIT\n' } };

/** Checks that a variable of the image leads the tests to a file of the agent, as it does outside temper. */
export function hookedSuite(image: () => Promise<string>): void {
  it("earns the reward by a known trick: the image's BASH_ENV names a file in the workdir", async () => {
    await using pipeline = await createPipeline('docker');
    const { reward, log } = await pipeline.run(task(await image(), '', {}), hook);
    assert.equal(reward, 1, log);
  });
}

type Evaluate = (pipeline: Pipeline) => (task: HarborTask, agent: ScriptedAgent) => Promise<Evaluated>;
const inPlace: Evaluate = ({ runInPlace }) => runInPlace;
const snapshot = 'a fresh sandbox with all that it changed';
/** Ways of grading, each with the task's settings for it. */
const ways: Readonly<Record<string, readonly [string, Evaluate]>> = {
  'a fresh sandbox with its diff': ['', ({ run }) => run],
  'a fresh sandbox with its workdir as an artifact': [
    '',
    ({ runArtifacts }) =>
      (files, agent) =>
        runArtifacts(files, agent, ['/workspace']),
  ],
  [snapshot]: ['sandbox = "snapshot"\n', ({ runSnapshot }) => runSnapshot],
  'its own sandbox': ['sandbox = "same"\n', inPlace],
  'its own sandbox, with its processes': ['sandbox = "same"\nkeep_processes = true\n', inPlace],
};

interface PlantedTask {
  readonly title: string;
  /** Variables that the task itself sets. */
  readonly env: Readonly<Record<string, string>>;
}

interface PlantedSuite {
  readonly image: () => Promise<string>;
  readonly open?: OpenProvider;
  readonly carriesChanges?: boolean;
}

/**
 * Checks that no program of temper's own is one that an agent has put into a directory of its image's PATH, or one that a variable
 * of the image or the task leads to.
 */
export function plantedSuite(
  kind: SandboxKind,
  { title, env }: PlantedTask,
  { image, open, carriesChanges = true }: PlantedSuite,
): void {
  describe(`an agent of a ${kind} sandbox that plants programs ${title}`, () => {
    let pipeline: Pipeline;
    let named: string;
    /** The planted programs that ran as another account than the agent's. */
    const ran: string[] = [];
    const look = async (sandbox: Sandbox): Promise<void> => {
      const command = { cwd: '/', env: {}, timeoutMs: 60_000, maxOutputBytes: 2 ** 16 } as const;
      const { signal } = new AbortController();
      const id = await sandbox.exec({ ...command, account: 'agent', argv: ['id', '-u'] }, signal);
      const found = await sandbox.exec({ ...command, account: 'agent', argv: ['ls', '/tmp'] }, signal);
      const marks = String(found.stdout).split('\n');
      ran.push(...marks.filter((one) => one.startsWith('ran-') && !one.startsWith(`ran-${String(id.stdout).trim()}-`)));
    };
    before(async () => {
      named = await image();
      pipeline = await createPipeline(kind, open, look);
    });
    after(() => pipeline?.[Symbol.asyncDispose]());

    for (const [where, [grading, way]] of Object.entries(ways)) {
      if (where === snapshot && !carriesChanges) continue;
      it(`earns nothing, and honest work all, for tests in ${where}`, async () => {
        const files = task(named, grading, env);
        const cheat = await way(pipeline)(files, { script: plant });
        assert.deepEqual([cheat.reward, cheat.verdict.value, ran], [0, 0, []], cheat.log);
        const honest = await way(pipeline)(files, { script: solve });
        assert.deepEqual([honest.reward, ran], [1, []], honest.log);
      });
    }
  });
}

export const plantedInPath: PlantedTask = { title: "in a directory of its image's PATH", env: {} };
export const plantedForHooks: PlantedTask = { title: 'that a variable of its task leads to', env: hooks };
