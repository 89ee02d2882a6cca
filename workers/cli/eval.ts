import { type Command, Option } from 'commander';
import { describeIssue } from '../../workflows/contracts/input.ts';
import { sweepInput } from '../../workflows/contracts/sweep.ts';
import { type HomeOption, runningConfigOf, stackCommand, wholeNumber } from './command.ts';
import { UsageError } from './errors.ts';
import { note, print, printJson } from './output.ts';

interface EvalOptions extends HomeOption {
  readonly tasks: string;
  readonly count: number;
  readonly concurrency: number;
  readonly agent: string;
  readonly sandbox: 'auto' | 'docker' | 'local';
  readonly json?: true;
}

export function evalCommand(): Command {
  return stackCommand(
    'eval',
    'Evaluates the policy in service on the first tasks of a set; does not train',
    'temper eval --tasks generated:test/1 --count 32',
  )
    .requiredOption('--tasks <set>', 'a task set, for example generated:test/1')
    .option('--count <n>', 'how many of its tasks', wholeNumber(1, 100_000), 32)
    .option('--concurrency <n>', 'rollouts at once', wholeNumber(1, 500), 16)
    .option('--agent <name>', 'which agent', 'mini')
    .addOption(new Option('--sandbox <kind>', 'where it runs').choices(['auto', 'docker', 'local']).default('auto'))
    .option('--json', 'the result as one JSON object on stdout')
    .action(evaluate);
}

async function evaluate(options: EvalOptions): Promise<void> {
  const { tasks, count, concurrency, agent, sandbox } = options;
  const request = { tasks, count, concurrency, settings: { agent, sandbox } };
  const parsed = sweepInput.safeParse(request);
  if (!parsed.success) {
    throw new UsageError(parsed.error.issues.map((issue) => describeIssue(issue, request)).join('; '));
  }
  const { openStackClient } = await import('./stack-client.ts');
  const { startSweep } = await import('./start-workflow.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  try {
    const id = `eval-${new Date().toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}`;
    const handle = await startSweep(stack.client, id, request);
    note(`started ${id}`);
    const result = await handle.result();
    if (options.json) return printJson({ id, ...result });
    const outcomes = Object.entries<number>(result.outcomes).filter(([, sum]) => sum > 0);
    print(
      `${result.tasks} tasks: ${outcomes.map(([kind, sum]) => `${kind} ${sum}`).join(', ')}; mean reward ${result.meanReward?.toFixed(3) ?? 'none'}`,
    );
  } finally {
    await stack.close();
  }
}
