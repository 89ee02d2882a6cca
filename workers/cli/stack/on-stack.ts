import { type HomeOption, runningConfigOf } from './command.ts';
import type { ReadableStack, StackClient } from './stack-client.ts';

/** Connects to the running stack for some work. Throws if its Temporal server does not answer. */
export async function onStack(options: HomeOption, work: (stack: StackClient) => Promise<void>): Promise<void> {
  const { openStackClient } = await import('./stack-client.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  try {
    await work(stack);
  } finally {
    await stack.close();
  }
}

/** Opens the store of a stack for some work, and connects to its Temporal server if that answers. */
export async function onStore(options: HomeOption, work: (stack: ReadableStack) => Promise<void>): Promise<void> {
  const { openReadableStack } = await import('./stack-client.ts');
  const stack = await openReadableStack(await runningConfigOf(options));
  try {
    await work(stack);
  } finally {
    await stack.close();
  }
}
