import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { renderReport } from '../../infra/report/render-report.ts';
import { summarise } from '../../infra/report/summary.ts';
import { readConfigWith } from '../../infra/settings/config.ts';
import { endRun, giveUp } from '../../workers/cli/commands/demo/run-demo.ts';
import { gatherReport } from '../../workers/cli/commands/report/gather-report.ts';
import { followRun } from '../../workers/cli/commands/train/follow-run.ts';
import { onInterrupt } from '../../workers/cli/follow/interrupt.ts';
import { startRun } from '../../workers/cli/follow/start-workflow.ts';
import { type StackSession, startSession } from '../../workers/cli/stack/stack-session.ts';
import { print } from '../../workers/cli/text/output.ts';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import type { RunRequest } from '../../workflows/contracts/run.ts';
import { checkRun } from './check-run.ts';
import { recordAgent } from './record-agent.ts';
import { type ReferenceAgent, type ReferenceRun, referenceRuns } from './runs.ts';
import { openReferenceStack, type ReferenceStack } from './stack.ts';

/**
 * `npm run demo:reference` trains on a real vLLM and a real SkyRL, in a stack as `temper up` starts it, with an agent in
 * sandboxes and verdicts as rewards. Exits with status 1 unless the policy learnt and every batch, mask, version and weight
 * change is correct. `-- --agent pi` trains the unmodified Pi in sealed containers, warmed up on its own recorded prompts;
 * `-- --agent claude-code` makes one step with Claude Code.
 */

const command = new Command('npm run demo:reference --')
  .description(
    'Trains the tiny Qwen3 of the reference stack through temper: a real vLLM as engine, a real SkyRL as trainer, an ' +
      'agent in sandboxes, verdicts as rewards. Sets up the stack if necessary, starts it, and stops what it started. ' +
      'Takes about half an hour on two cores.',
  )
  .addOption(
    new Option(
      '--agent <name>',
      'agent to train: mini; pi, unmodified and in Docker; claude-code, likewise, for one step',
    )
      .choices(Object.keys(referenceRuns))
      .default('mini'),
  )
  .argument('[directory]', 'directory for report.html and summary.json', 'temper-demo-reference')
  .parse();
const [directory = ''] = command.processedArgs;
const { agent } = command.opts<{ agent: ReferenceAgent }>();

const run = 'reference';
const { request, recorded, maxTokensPerTurn, learns, settings } = referenceRuns[agent]();

const interrupt = onInterrupt('cancelling the run; waiting until it has cleaned up');
const home = await mkdtemp(join(tmpdir(), 'temper-reference-'));
const out = resolve(directory);
let stack: ReferenceStack | null = null;
let session: StackSession | null = null;
try {
  stack = await openReferenceStack();
  const asked = recorded === null ? request : await withRecordedWarmUp(recorded, stack);
  session = await startSession(configOn(stack, home), interrupt.signal);
  const startedAt = performance.now();
  const handle = await startRun(session.client, run, asked);
  // If this fails, the run's sandboxes must be removed before the stack that removes them is closed.
  const status = await followRun(session, run, { onPause: giveUp }, interrupt.signal).catch(async (error) => {
    await endRun(handle);
    throw error;
  });
  const problems = await checkRun(session, status, { checkpoints: stack.checkpoints, maxTokensPerTurn, learns });
  const data = await gatherReport({ ...session, server: session.client }, run, null);
  const wallSeconds = (performance.now() - startedAt) / 1000;
  await mkdir(out, { recursive: true });
  await writeFile(join(out, 'report.html'), renderReport({ ...data, wallSeconds }));
  await writeFile(join(out, 'summary.json'), `${JSON.stringify(summarise({ ...data, wallSeconds }), null, 2)}\n`);
  for (const problem of problems) print(`FAILED: ${problem}`);
  print(
    `${problems.length === 0 ? 'proved' : 'NOT proved'} in ${wallSeconds.toFixed(0)} s; ${join(out, 'report.html')}`,
  );
  process.exitCode = problems.length === 0 ? 0 : 1;
} catch (error) {
  print(interrupt.signal.aborted ? 'interrupted' : `FAILED: ${errorMessage(error)}`);
  process.exitCode = interrupt.signal.aborted ? 130 : 1;
} finally {
  await session?.close();
  await stack?.close();
  interrupt.release();
  await rm(home, { recursive: true, force: true });
}

async function withRecordedWarmUp(
  { calls, traces }: NonNullable<ReferenceRun['recorded']>,
  on: ReferenceStack,
): Promise<RunRequest> {
  const recording = { task: 'generated:train/1/0', ...request.settings };
  const configWith = (other: Record<string, string>) => configOn(on, home, other);
  const [right = '', wrong = ''] = await recordAgent(calls, configWith, recording, interrupt.signal);
  return { ...request, warmUp: { ...request.warmUp, traces: [...traces(right, wrong)] } };
}

function configOn(
  { vllmUrl, vllmModel, skyrlUrl, skyrlModel, ...where }: ReferenceStack,
  TEMPER_HOME: string,
  other: Record<string, string> = {},
) {
  return readConfigWith({
    TEMPER_HOME,
    // The engine is slow, but not slower for many requests at once.
    TEMPER_CAPACITY: '16',
    TEMPER_EVALUATIONS: '4',
    TEMPER_MODEL_DIR: where.modelDir,
    TEMPER_ENGINE_URLS: vllmUrl,
    TEMPER_ENGINE_MODEL: vllmModel,
    TEMPER_PUBLISH: 'lora',
    TEMPER_TRAINER_URL: skyrlUrl,
    TEMPER_TRAINER_MODEL: skyrlModel,
    TEMPER_TRAINER_REDUCTION: 'datum-mean',
    TEMPER_CHECKPOINTS: where.checkpoints,
    TEMPER_ENGINE_CHECKPOINTS: where.checkpointsInside,
    ...settings,
    ...other,
  });
}
