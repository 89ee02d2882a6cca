import type { Task } from '../../../workflows/contracts/task.ts';
import type { BuildContext } from '../../sandbox/image.ts';
import type { Beside, TaskService } from '../../sandbox/service.ts';
import type { GradedTask } from '../task.ts';

/** Returns a task as its tests have it: with the sandbox of their own, if they have one. */
export function taskOfTests(task: Task): Task {
  if (task.testSandbox === undefined) return task;
  const { testSandbox, image: _, imageFrom: __, ...rest } = task;
  return { ...rest, ...testSandbox };
}

interface TestedFiles extends GradedTask {
  readonly build: BuildContext | null;
  readonly beside: Beside<TaskService> | null;
}

/** Returns the content of a task as its tests have it: an image of their own holds them, and knows nothing of the workspace. */
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
