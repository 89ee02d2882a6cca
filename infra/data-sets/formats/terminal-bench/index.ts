import { posix } from 'node:path';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import { readCompose } from '../../../compose/compose.ts';
import { type MainContainer, plainContainer } from '../../../compose/main-container.ts';
import { readOnlyPaths } from '../../../harbor/added-files.ts';
import { configureDockerfile } from '../../../harbor/build-settings.ts';
import { readDockerfile, workdirIn } from '../../../harbor/dockerfile.ts';
import { harborFiles, script } from '../../../harbor/harbor-files.ts';
import { plainDockerfile } from '../../../harbor/plain-dockerfile.ts';
import type { FileTree } from '../../../sandbox/files.ts';
import { directoryFormat } from '../../directories/directory-format.ts';
import { type PublishedFiles, publishedFiles } from '../../directories/published-files.ts';
import { imageOf, isHidden } from './image-files.ts';
import { testScript } from './reward-script.ts';
import { composeFormat, serviceFiles } from './services.ts';
import { readTaskYaml, type TaskYaml } from './task-yaml.ts';
import { typedSolution } from './typed-solution.ts';
import { verdicts } from './verdicts.ts';

const composeFile = 'docker-compose.yaml';

/** The disk of a task, whose format knows no limit. Its tests get a copy of the workdir. */
const diskMb = 10_240;

/**
 * terminal-bench 1: directories with `task.yaml`, `run-tests.sh`, `tests/`, the Dockerfile of one container, and optionally a
 * solution and a compose file. The verdict is what the task's parser reads at the end of `run-tests.sh`. What a sandbox
 * cannot provide is rejected, with the name of the field.
 */
export const terminalBench = {
  mayKeepProcesses: true,
  ...directoryFormat({
    markerFile: 'task.yaml',
    archive: /(?:^|\/)tasks\.tar\.gz$/,
    toFiles(tree, name, { options }) {
      const files = publishedFiles(tree, name);
      const task = readTaskYaml(files.text('task.yaml'), `${name}/task.yaml`);
      requireJudged(task, name);
      // Tests that ask for the agent's shell need its processes and files, so they run in the agent's own sandbox.
      const besideAgent = task.testsInAgentShell && options.shell !== 'fresh';
      const compose = files.textOr(composeFile, null);
      const {
        main: container,
        beside,
        hosts,
      } = compose === null
        ? { main: plainContainer, beside: null, hosts: [] }
        : readCompose({ text: compose, file: `${name}/${composeFile}`, files: shownFiles(tree) }, composeFormat);
      const { context, mounts, texts, build } = container;
      const dockerfile = posix.join(context, container.dockerfile);
      const image = options.image ?? container.image;
      const described = dockerfileOf(build.inline ?? files.textOr(dockerfile, null), container, name);
      if (image === null && described === null) {
        throw unsupported(name, dockerfile, 'a Dockerfile, or an image given with ?image=', 'neither');
      }
      const workdir = container.workdir ?? workdirOf(described) ?? '/app';
      const solve = solutionOf(files, name);
      const directories = container.directories.filter((path) => path !== workdir);
      const ofClient = imageOf(tree, { image, context, source: described, added: { mounts, directories, texts } });
      const buildsOffline = build.offline && typeof ofClient !== 'string';
      return harborFiles({
        instruction: task.instruction,
        image: ofClient,
        environment: serviceFiles(tree, { beside, image: ofClient, buildsOffline, file: `${name}/${composeFile}` }),
        workdir,
        env: container.env,
        entrypoint: entrypointOf(container, described),
        ...container.limits,
        memory: container.memory,
        hosts,
        ulimits: container.ulimits,
        diskMb,
        agentTimeoutSec: task.agentTimeoutSec,
        user: options.user,
        evaluationTimeoutSec: task.testTimeoutSec,
        protectedPaths: readOnlyPaths(tree, mounts, workdir),
        ownWorkdir: true,
        gradedIn: besideAgent ? 'same' : (options.grading ?? (task.testsInAgentShell ? 'fresh' : undefined)),
        keepProcesses: besideAgent || options.processes === 'keep',
        // Where both have a `run-tests.sh`, the harness copies that of `tests/` last.
        tests: new Map([
          ['run-tests.sh', script(files.text('run-tests.sh'))],
          ...files.below('tests/'),
          ['test.sh', script(testScript(task.parser, mounts))],
        ]),
        ...(solve !== null && { solution: new Map([['solve.sh', script(solve)]]) }),
      });
    },
  }),
} as const;

/** Returns the files whose content the containers of a task may have before its tests run. */
const shownFiles = (tree: FileTree): FileTree => new Map([...tree].filter(([path]) => !isHidden(path)));

/** Returns the text of the Dockerfile with the settings of the compose file. */
function dockerfileOf(text: string | null, { build }: MainContainer, name: string): string | null {
  if (text === null) return null;
  return configureDockerfile(text, build, (expected, got) =>
    unsupported(name, `${composeFile}: services.client.build.target`, expected, got),
  );
}

/** Rejects a task whose verdict cannot be read. */
function requireJudged({ parser }: TaskYaml, name: string): void {
  if (Object.hasOwn(verdicts, parser)) return;
  throw unsupported(name, 'task.yaml', `a parser_name of ${Object.keys(verdicts).join(', ')}`, parser);
}

/** Images whose own workdir is known, which no Dockerfile repeats. */
const knownWorkdirs: readonly (readonly [RegExp, string])[] = [[/(?:^|\s|\/)swebench\/sweb\.eval\./, '/testbed']];

function workdirOf(dockerfile: string | null): string | null {
  if (dockerfile === null) return null;
  const read = readDockerfile(plainDockerfile(dockerfile).source);
  return workdirIn(read) ?? knownWorkdirs.find(([image]) => image.test(read.base))?.[1] ?? null;
}

/** The command that runs for as long as the container, where the compose file changes that of the image. */
function entrypointOf({ entrypoint, command }: MainContainer, dockerfile: string | null) {
  if (entrypoint === undefined && command === null) return undefined;
  const first =
    entrypoint ?? (dockerfile === null ? [] : (readDockerfile(plainDockerfile(dockerfile).source).entrypoint ?? []));
  return [...first, ...(command ?? [])];
}

/** The script that solves the task, or types its solution; null if there is none. */
function solutionOf(files: PublishedFiles, name: string): string | null {
  const solve = files.textOr('solution.sh', null);
  const typed = files.textOr('solution.yaml', null);
  return solve === null && typed !== null ? typedSolution(typed, `${name}/solution.yaml`) : solve;
}

const unsupported = (name: string, file: string, expected: string, got: string): TemperFailure =>
  new TemperFailure('UnsupportedTask', `${name}/${file}: expected ${expected}, got ${got}`);
