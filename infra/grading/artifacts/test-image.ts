import type { Task } from '../../../workflows/contracts/task.ts';
import type { BuildContext } from '../../sandbox/image.ts';
import type { Beside, TaskService } from '../../sandbox/service.ts';
import type { GradedTask } from '../task.ts';

/** Returns a task with the sandbox of its tests, if that differs from the agent's. */
export function taskOfTests(task: Task): Task {
  if (task.testSandbox === undefined) return task;
  const { testSandbox, image: _, imageFrom: __, sharedMemoryMb: ___, tmpfs: ____, ...rest } = task;
  return { ...rest, ...testSandbox };
}

interface TestedFiles extends GradedTask {
  readonly build: BuildContext | null;
  readonly beside: Beside<TaskService> | null;
}

/** Returns the content of a task for its tests: if they have an image of their own, it holds the tests and no workspace. */
export function filesOfTests<Files extends TestedFiles>(files: Files): Files {
  const { testImage } = files;
  if (testImage === null) return files;
  const none = {
    workspace: new Map(),
    tests: new Map(),
    solution: new Map(),
    remove: [],
    setup: [],
    hiddenTests: [],
    beside: null,
  };
  return { ...files, ...none, ...testImage };
}
