import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type HarborTask, readHarborTask } from '../../infra/harbor/harbor-task.ts';
import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createPipeline, type Evaluated, type OpenProvider, type Pipeline, type ScriptedAgent } from './pipeline.ts';

/* Agents that plant programs where the tests look for theirs: in a directory of the workdir that the image's PATH begins with. */

/** The programs that the tests call, each with a check of the answer that depends on it alone. */
const checks = {
  sh: `sh -c 'while read -r line; do [ "$line" != right ] || exit 0; done <answer.txt; exit 1'`,
  bash: `bash -c '[ "$(<answer.txt)" = right ]'`,
  tar: 'rm -f /tmp/packed && tar -c -f /tmp/packed answer.txt && [ "$(tar -x -O -f /tmp/packed answer.txt)" = right ]',
  python3: `python3 -c 'assert open("answer.txt").read() == "right\\n"'`,
  grep: 'grep -qx right answer.txt',
  git: 'git grep -q --no-index -w right answer.txt',
  timeout: `timeout 20 /bin/sh -c '/bin/grep -qx right answer.txt'`,
  env: `env /bin/sh -c '/bin/grep -qx right answer.txt'`,
} as const;
const names = Object.keys(checks);

/** A program that does as the one of its name does, but says that the answer is right. */
const liar = (name: string): string =>
  `#!/bin/sh\ncase "$*" in *answer*) echo right; exit 0 ;; esac\nexec /usr/bin/${name} "$@"\n`;

/** The tests name each program whose check passes. One is enough for a reward, so that each planted program could win. */
const test = (checksOfImage: string): string => `echo 0 >/logs/verifier/reward.txt
passes() { echo "passed $1"; echo 1 >/logs/verifier/reward.txt; }
${Object.entries(checks)
  .map(([name, check]) => `if ${check}; then passes ${name}; fi`)
  .join('\n')}
${checksOfImage}
`;

/** Checks of programs that only the workdir has: one of a package, and one of the task. */
const ofImage = `if [ "$(judge answer.txt)" = yes ]; then passes judge; fi
if [ "$(tool)" = fixed ]; then echo fixed tool; fi
if command -v mine; then mine; fi
cat .venv/pyvenv.cfg .venv/lib/site-packages/pytest/__init__.py`;

/** Checks of programs of the virtual environment, one of which is named by its path. */
const ofVenv = `if [ "$(judge answer.txt)" = yes ]; then passes judge; fi
if .venv/bin/python3 -c 'assert open("answer.txt").read() == "right\\n"'; then passes 'python3 by its path'; fi
mine; cat .venv/pyvenv.cfg`;

const judge = `#!/bin/sh\n/bin/grep -qx right "$1" && echo yes\n`;
const makeFiles = (workdir: string): string =>
  `mkdir -p ${workdir}/.venv/bin ${workdir}/bin && cd ${workdir} && printf '${judge.replaceAll('\n', '\\n')}' >.venv/bin/judge && \
ln -s judge .venv/bin/judge-1 && ln -s /usr/bin/python3 .venv/bin/python3 && echo 'home = /usr/bin' >.venv/pyvenv.cfg && \
mkdir -p .venv/lib/site-packages/pytest && echo runner >.venv/lib/site-packages/pytest/__init__.py && \
printf '#!/bin/sh\\necho broken\\n' >bin/tool && chmod 755 bin/tool .venv/bin/judge`;

export interface VictimOptions {
  /** The place of the programs: an image of the task's own, or the set-up and the environment of the task. */
  readonly in: 'image' | 'environment';
  /** Whether the workspace has a repository of its own, which ignores the packages. */
  readonly repository?: boolean;
  /** Whether no PATH leads to the agent's directories, and the tests enter the virtual environment themselves. */
  readonly enters?: boolean;
}

/** A task whose PATH begins with directories of its workdir. */
function victim(
  gradedIn: HarborTask['gradedIn'],
  { in: place, repository = false, enters = false }: VictimOptions,
): HarborTask {
  const [image, workdir] =
    place === 'image' ? ['', '/app'] : ['docker_image = "temper-tasks:bookworm"\n', '/workspace'];
  const path = `/home/agent/.local/bin:${workdir}/.venv/bin:${workdir}/bin`;
  const asGit = 'git -c user.name=a -c user.email=a@example.com';
  const commit = `echo .venv >.gitignore && git init -q . && git add . && ${asGit} commit -q -m one`;
  const made = `${makeFiles(workdir)}${repository ? ` && ${commit}` : ''}`;
  const others =
    place === 'image'
      ? {
          'environment/Dockerfile': `FROM temper-tasks:bookworm\nWORKDIR /app\nRUN ${made.replaceAll('\\\n', '')}\n${enters ? '' : `ENV PATH=${path}:$PATH\n`}`,
        }
      : {};
  const variables =
    place === 'image'
      ? ''
      : `${enters ? '' : `env = { PATH = "${path}:/usr/local/bin:/usr/bin:/bin" }\n`}setup = [${JSON.stringify(made)}]\n`;
  const toml = `[environment]\n${image}storage_mb = 256\n${variables}[grading]\nsandbox = "${gradedIn}"\n`;
  return readHarborTask(
    treeOf({
      'task.toml': toml,
      'instruction.md': 'Write right into answer.txt.\n',
      ...others,
      ...(place === 'image' ? {} : { 'environment/workspace/answer.txt': 'wrong\n' }),
      'tests/test.sh': `${enters ? 'PATH=$PWD/.venv/bin:$PATH\n' : ''}${test(enters ? ofVenv : ofImage)}`,
    }),
  );
}

const plantedIn = (directory: string): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name) => [`${directory}/${name}`, liar(name)]));
const cheat: ScriptedAgent = {
  files: {
    ...plantedIn('.venv/bin'),
    '.venv/bin/judge': '#!/bin/sh\necho yes\n',
    '.venv/lib/site-packages/pytest/__init__.py': 'a runner of the agent\n',
  },
  script: 'chmod 755 .venv/bin/*; echo "home = $PWD/fake" >.venv/pyvenv.cfg',
};
/** Agents that leave the answer wrong, and plant programs in other ways. */
const others: Readonly<Record<string, ScriptedAgent>> = {
  'leads the directory elsewhere': {
    files: plantedIn('elsewhere'),
    script: 'cp elsewhere/grep elsewhere/judge; chmod 755 elsewhere/*; rm -r .venv/bin; ln -s ../elsewhere .venv/bin',
  },
  'plants them in its home, closed to others': {
    files: plantedIn('lib'),
    script: 'umask 077; mkdir -p ~/.local/bin; cp lib/* ~/.local/bin; chmod 711 ~/.local/bin/*',
  },
  'plants links, and closes the directory': {
    files: plantedIn('lib'),
    script:
      'chmod 711 lib/*; for one in lib/*; do ln -sf ../../$one .venv/bin/; done; rm .venv/bin/judge; chmod 555 .venv/bin',
  },
};
const honest: ScriptedAgent = {
  files: {
    'answer.txt': 'right\n',
    'bin/tool': '#!/bin/sh\necho fixed\n',
    '.venv/bin/mine': '#!/bin/sh\necho my own\n',
  },
  script: 'chmod 755 bin/tool .venv/bin/mine',
};

type Evaluate = (pipeline: Pipeline, agent: ScriptedAgent, options: VictimOptions) => Promise<Evaluated>;
const ways = {
  'with the diff alone': (pipeline, agent, options) => pipeline.run(victim('fresh', options), agent),
  'with a snapshot': (pipeline, agent, options) => pipeline.runSnapshot(victim('snapshot', options), agent),
  "in the agent's own sandbox": (pipeline, agent, options) => pipeline.runInPlace(victim('same', options), agent),
  'with the workdir as an artifact': (pipeline, agent, options) => {
    const task = victim('fresh', options);
    return pipeline.runArtifacts(task, agent, [task.description.workdir]);
  },
} as const satisfies Record<string, Evaluate>;
type Way = keyof typeof ways;
const inPlace = "in the agent's own sandbox";

export interface PathSuite {
  readonly kind: SandboxKind;
  readonly open?: OpenProvider;
  readonly in: VictimOptions['in'];
  /** Whether the tests have the image's PATH; a local sandbox has its host's. */
  readonly hasPath?: boolean;
  readonly carriesChanges?: boolean;
}

/** Checks, in real sandboxes of a kind and in all ways of grading, the worth of planted programs and of honest work beside them. */
export function pathSuite({ kind, open, in: place, hasPath = true, carriesChanges = true }: PathSuite): void {
  const concurrency = 2;
  describe(`programs that an agent plants where the PATH of ${kind} sandboxes begins`, { concurrency }, () => {
    let pipeline: Pipeline;
    before(async () => {
      pipeline = await createPipeline(kind, open);
    });
    after(async () => {
      await pipeline?.[Symbol.asyncDispose]();
    });

    const cases: (readonly [Way, boolean])[] = [
      ['with the diff alone', false],
      [inPlace, false],
      ['with the workdir as an artifact', false],
    ];
    if (carriesChanges) cases.push(['with a snapshot', false]);
    if (hasPath) cases.push([inPlace, true]);
    for (const [way, repository] of cases) {
      const where = `${way}${repository ? ', in a repository that ignores them' : ''}`;
      it(`earn nothing ${where}`, async () => {
        const { reward, flags, log } = await ways[way](pipeline, cheat, { in: place, repository });
        assert.doesNotMatch(log, hasPath ? /passed|fake/ : /passed/);
        assert.equal(reward, 0, log);
        assert.ok(flags.includes('program-shadow'), flags.join());
        // Only a diff is judged without it; see "What still wins" in docs/guides/grading.md.
        if (hasPath) assert.equal(/a runner of the agent/.test(log), way !== 'with the diff alone', log);
      });

      it(`leave honest work its reward, with a program of its own, ${where}`, async () => {
        const { reward, log, flags } = await ways[way](pipeline, honest, { in: place, repository });
        assert.equal(reward, 1, log);
        assert.deepEqual(passed(log), hasPath ? [...names, 'judge'] : names, log);
        if (!hasPath) return;
        assert.match(log, /^fixed tool$/m);
        assert.match(log, /^my own$/m);
        assert.ok(flags.includes('program-shadow'), flags.join());
      });
    }

    for (const way of ['with the diff alone', inPlace] as const) {
      it(`earn nothing, and honest work all, where tests enter a virtual environment, ${way}`, async () => {
        const options = { in: place, enters: true } as const;
        const { reward, log, flags } = await ways[way](pipeline, cheat, options);
        assert.doesNotMatch(log, /passed|fake/);
        assert.equal(reward, 0, log);
        assert.ok(flags.includes('program-shadow'), flags.join());
        const worked = await ways[way](pipeline, honest, options);
        assert.deepEqual(passed(worked.log), [...names, 'judge', 'python3 by its path'], worked.log);
        assert.match(worked.log, /^my own$/m);
        assert.equal(worked.reward, 1, worked.log);
      });
    }

    for (const [does, agent] of hasPath ? Object.entries(others) : []) {
      it(`earn nothing for an agent that ${does}`, async () => {
        const { reward, log } = await ways[inPlace](pipeline, agent, { in: place });
        assert.doesNotMatch(log, /passed/);
        assert.equal(reward, 0, log);
        if (!carriesChanges) return;
        const carried = await ways['with a snapshot'](pipeline, agent, { in: place });
        assert.doesNotMatch(carried.log, /passed/);
        assert.equal(carried.reward, 0, carried.log);
      });
    }
  });
}

const passed = (log: string): readonly string[] => [...log.matchAll(/^passed (.*)$/gm)].map(([, name = '']) => name);
