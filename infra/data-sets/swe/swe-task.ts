import { dirname } from 'node:path/posix';
import type { FileTree } from '../../sandbox/files.ts';
import type { GradingFile } from '../../tasks/harbor/grading.ts';
import type { DataSetSource } from '../data-set.ts';
import type { CommitFiles } from '../fetch/repository.ts';
import { type EvalScript, splitEvalScript } from './eval-script.ts';
import { harborFiles, quote, script, text } from './harbor-files.ts';
import { type PatchedFile, patchedFiles } from './test-patch.ts';

/** A repository at a commit, an issue, and tests that tell whether it is solved: what all rows of the SWE family come down to. */
export interface SweTask {
  readonly instruction: string;
  readonly image: string;
  readonly workdir: string;
  /** Files at the base commit, where the image brings none. */
  readonly workspace: CommitFiles | null;
  /** Tests that the agent does not see. */
  readonly testPatch: string;
  /** Does the test command apply it? Else it is applied before. */
  readonly commandApplies?: true;
  /** Files that the tests need as they are at the base commit, whatever the agent made of them. */
  readonly testFiles?: readonly string[];
  /** What to apply to solve it. */
  readonly solution: { readonly patch: string; readonly reverse?: true } | null;
  /** What the image holds of the answer. */
  readonly remove?: readonly string[];
  /** Shell commands to run in the workdir before the base commit is made. */
  readonly setup: readonly string[];
  /** What the shell of the tests does before them, in the workdir. */
  readonly before?: readonly string[];
  /** What runs the tests; its status is theirs. */
  readonly testCommand: string;
  /** Prepares and runs the tests in its own way, instead of the command. */
  readonly evalScript: string | null;
  readonly grading: GradingFile;
}

/** What the field gives the tests of such a task, and room for a Python environment and its repository. */
const limits = { evaluationTimeoutSec: 1_800, cpus: 2, memoryMb: 4_096, diskMb: 10_240 } as const;

/**
 * The directory of such a task in Harbor layout. Its `tests/test.sh` writes no reward: it prints what the tests say, and
 * `grading.json` names what has to pass and who can read it (see `Grading`).
 */
export function sweFiles(task: SweTask): FileTree {
  const { instruction, image, workdir, setup, grading } = task;
  const { prepare, command } =
    task.evalScript === null
      ? { prepare: prepareScript(task), command: `${task.testCommand}\n` }
      : preparedBy(task.evalScript, task.before ?? []);
  return harborFiles({
    ...limits,
    instruction,
    image,
    workdir,
    ...(task.remove !== undefined && { remove: task.remove }),
    setup: [...linkCommands(task.workspace), ...setup],
    ...(task.workspace !== null && { workspace: task.workspace.tree }),
    tests: new Map([
      ...(prepare === '' ? [] : [['prepare.sh', script(prepare)] as const]),
      ['test.sh', script(command)],
      ...(task.testPatch === '' ? [] : [['test.patch', text(withNewline(task.testPatch))] as const]),
    ]),
    ...(task.solution !== null && { solution: solutionFiles(task.solution, workdir) }),
    grading,
    testsInRepository: true,
    protectedFiles: [...patchedFiles(task.testPatch).map(({ path }) => path), ...(task.testFiles ?? [])],
  });
}

/** The files of the row's repository, where the address says that repositories are not in the images. */
export async function workspaceOf(
  source: DataSetSource,
  row: { readonly repo: string; readonly base_commit: string },
): Promise<CommitFiles | null> {
  return source.options.repositories === undefined ? null : source.checkOut(row.repo, row.base_commit);
}

/** A task's workspace is a tree of files: its links are made by its set-up, which may run twice. */
function linkCommands(workspace: CommitFiles | null): readonly string[] {
  return [...(workspace?.links ?? [])].map(
    ([path, target]) => `mkdir -p -- ${quote(dirname(path))} && ln -sfn -- ${quote(target)} ${quote(path)}`,
  );
}

/** The images of the field have their Python in a conda environment of this name. */
const activate = 'if [ -f /opt/miniconda3/bin/activate ]; then . /opt/miniconda3/bin/activate testbed; fi';

/** The tests as they are to be: restored, and patched. */
function prepareScript({ workdir, testPatch, commandApplies, testFiles = [], before = [] }: SweTask): string {
  const known = testFiles.map((path) => ({ path, before: true, written: false }));
  const files = [...patchedFiles(testPatch), ...known];
  const apply = `git -c safe.directory='*' apply -v --whitespace=nowarn "$TEMPER_TESTS/test.patch" || { echo 'The test patch does not apply'; exit 1; }`;
  return [
    '#!/bin/bash',
    `cd ${quote(workdir)} || exit 1`,
    activate,
    ...restore(files),
    ...(testPatch === '' || commandApplies ? [] : [apply]),
    ...before,
    '',
  ].join('\n');
}

/** A published script installs the repository as root, with the network: `before` is for where that can't be done. */
function preparedBy(evalScript: string, before: readonly string[]): EvalScript {
  const { prepare, command } = splitEvalScript(evalScript);
  const commands = before.map((one) => `${one}\n`).join('');
  return { prepare: prepare === '' ? '' : `${prepare}${commands}`, command };
}

/** Test files as they are at the base commit: the agent may have changed them, or made one of a name that is to come. */
function restore(files: readonly PatchedFile[]): readonly string[] {
  const words = (before: boolean) => files.filter((file) => file.before === before).map(({ path }) => quote(path));
  const added = words(false);
  const kept = words(true).map((path) => `git -c safe.directory='*' checkout -q HEAD -- ${path}`);
  return [...(added.length === 0 ? [] : [`rm -f ${added.join(' ')}`]), ...kept];
}

function solutionFiles({ patch, reverse }: NonNullable<SweTask['solution']>, workdir: string): FileTree {
  const how = reverse === true ? '-R ' : '';
  const solve = `#!/bin/bash\ncd ${quote(workdir)} && git apply ${how}--whitespace=nowarn /solution/solution.patch\n`;
  return new Map([
    ['solve.sh', script(solve)],
    ['solution.patch', text(withNewline(patch))],
  ]);
}

export const withNewline = (patch: string): string => (patch.endsWith('\n') ? patch : `${patch}\n`);
