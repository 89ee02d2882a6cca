import { z } from 'zod';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import { number } from '../../../../workflows/contracts/input.ts';
import { readDockerfile } from '../../../harbor/dockerfile.ts';
import { harborFiles, script } from '../../../harbor/harbor-files.ts';
import type { FileTree } from '../../../sandbox/files.ts';
import { directoryFormat } from '../../directories/directory-format.ts';
import { publishedFiles } from '../../directories/published-files.ts';
import { required } from '../../rows/row.ts';
import { type ComposedContainer, defaultDockerfile, readCompose } from './compose.ts';
import { testScript } from './reward-script.ts';
import { readYaml } from './yaml.ts';

const taskYaml = z.looseObject({
  instruction: required('the text of the task'),
  parser_name: z.string({ error: 'expected the name of a parser' }).default('pytest'),
  max_agent_timeout_sec: number(1, 1_000_000, 'seconds').default(360),
  max_test_timeout_sec: number(1, 1_000_000, 'seconds').default(60),
  run_tests_in_same_shell: z.boolean({ error: 'expected true or false' }).nullish(),
});

const composeFile = 'docker-compose.yaml';

/** The variables that the harness passes to the compose file (terminal_bench/terminal/docker_compose_manager.py). */
const variables = {
  T_BENCH_TEST_DIR: '/tests',
  T_BENCH_CONTAINER_LOGS_PATH: '/logs',
  T_BENCH_CONTAINER_AGENT_LOGS_PATH: '/agent-logs',
};
const withoutCompose: ComposedContainer = { image: null, dockerfile: defaultDockerfile, workdir: null, env: {} };

/**
 * terminal-bench 1: directories with `task.yaml`, `run-tests.sh`, `tests/`, the Dockerfile of one container, and optionally
 * `solution.sh` and a compose file. The verdict is pytest's summary at the end of `run-tests.sh`. A compose file that needs
 * more than one container in a sandbox is rejected, with the name of the field.
 */
export const terminalBench = directoryFormat({
  markerFile: 'task.yaml',
  archive: /(?:^|\/)tasks\.tar\.gz$/,
  toFiles(tree, name, { options }) {
    const files = publishedFiles(tree, name);
    const task = readYaml(taskYaml, files.text('task.yaml'), `${name}/task.yaml`);
    if (task.run_tests_in_same_shell) {
      throw unsupported(name, 'task.yaml', 'run_tests_in_same_shell: false', 'true');
    }
    if (task.parser_name !== 'pytest') {
      const expected = 'parser_name: pytest, the only supported parser';
      throw unsupported(name, 'task.yaml', expected, `parser_name: ${task.parser_name}`);
    }
    const compose = files.textOr(composeFile, null);
    const container = compose === null ? withoutCompose : readCompose(compose, `${name}/${composeFile}`, variables);
    const { dockerfile } = container;
    const image = options.image ?? container.image;
    const described = files.textOr(dockerfile, null);
    if (image === null && described === null) {
      throw unsupported(name, dockerfile, 'a Dockerfile, or an image given with ?image=', 'neither');
    }
    const solve = files.textOr('solution.sh', null);
    return harborFiles({
      instruction: task.instruction,
      image: image ?? buildContext(tree, dockerfile),
      workdir: container.workdir ?? (described === null ? null : readDockerfile(described).workdir) ?? '/app',
      env: container.env,
      agentTimeoutSec: task.max_agent_timeout_sec,
      evaluationTimeoutSec: task.max_test_timeout_sec,
      tests: new Map([
        ...files.below('tests/'),
        ['run-tests.sh', script(files.text('run-tests.sh'))],
        ['test.sh', script(testScript)],
      ]),
      ...(solve !== null && { solution: new Map([['solve.sh', script(solve)]]) }),
    });
  },
});

/** Files that must not be in the agent's image. */
const hidden = /^(?:tests\/|(?:task|solution)\.yaml$|(?:solution|run-tests)\.sh$|docker-compose\.ya?ml$)/;

/** The files from which the Dockerfile may copy: the task's directory without tests and solution. */
function buildContext(tree: FileTree, dockerfile: string): FileTree {
  const context = new Map([...tree].filter(([path]) => !hidden.test(path)));
  const entry = context.get(dockerfile);
  if (entry !== undefined) context.set(defaultDockerfile, entry);
  return context;
}

const unsupported = (name: string, file: string, expected: string, got: string): TemperFailure =>
  new TemperFailure('UnsupportedTask', `${name}/${file}: expected ${expected}, got ${got}`);
