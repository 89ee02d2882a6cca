import {
  type Action,
  type Observation,
  OpenEnvError,
  type ResetData,
  type State,
  type StepResult,
} from '../protocol/messages.ts';
import type { Environment, RunningEpisode, TaskEntry } from './environment.ts';
import type { EpisodeEnd, Event } from './episode.ts';
import type { ModelReply, OfferedTool } from './model-call.ts';

/** The environment of one client: at most one episode at a time. Its calls must not overlap. */
export interface ClientSession {
  reset(data: ResetData): Promise<StepResult>;
  step(action: Action): Promise<StepResult>;
  state(): State;
  tools(): readonly OfferedTool[];
  /** Ends the episode, if there is one, and waits until its rollout has cleaned up. */
  close(): Promise<void>;
}

const restartedText =
  'The sandbox was lost, and the episode has begun again in a fresh one. This action did not take effect; all earlier ones are gone.';

export function createClientSession(environment: Environment): ClientSession {
  let running: RunningEpisode | null = null;
  let isClosed = false;
  let state: State = { episode_id: null, step_count: 0, task_id: null, rollout: null, done: false };

  function resultOf(event: Event, observationOf: (output: string) => Observation): StepResult {
    if (event.kind === 'call') {
      if (!event.restarted) return { observation: observationOf(event.call.output), reward: null, done: false };
      return { observation: { ...observationOf(restartedText), restarted: true }, reward: null, done: false };
    }
    const { reward, ...how } = event.end;
    state = { ...state, done: true };
    return { observation: { ...observationOf(''), ...how }, reward, done: true };
  }

  return {
    async reset({ task_id, seed, episode_id }) {
      const task = environment.choose(task_id ?? null, seed ?? null);
      await running?.end();
      running = null;
      const begun = await environment.begin(task);
      if (isClosed) {
        await begun.end();
        throw new OpenEnvError('SESSION_ERROR', 'the session was closed');
      }
      running = begun;
      state = {
        episode_id: episode_id ?? begun.workflowId,
        step_count: 0,
        task_id: task.id,
        rollout: begun.workflowId,
        done: false,
      };
      const event = await begun.episode.first();
      if (event.kind === 'call') return begunResult(task, begun.workflowId, event.call.instruction);
      running = null;
      state = { ...state, done: true };
      throw neverBegan(task, event.end);
    },
    async step(action) {
      if ('type' in action && action.type === 'list_tools') {
        const tools = this.tools().map(({ name, description, schema }) => ({
          name,
          description,
          input_schema: schema,
        }));
        return { observation: { tools }, reward: null, done: state.done };
      }
      if (running === null || state.done) {
        throw new OpenEnvError('EXECUTION_ERROR', 'expected a running episode, got none; begin one with reset');
      }
      const unknown = unknownTool(action, running.episode.tools());
      if (unknown !== null) return { observation: unknown, reward: null, done: false };
      state = { ...state, step_count: state.step_count + 1 };
      return resultOf(await running.episode.answer(replyOf(action)), (output) => observationOf(action, output));
    },
    state: () => state,
    tools: () => running?.episode.tools() ?? environment.tools,
    async close() {
      isClosed = true;
      const closing = running;
      running = null;
      await closing?.end();
    },
  };
}

function begunResult({ id }: TaskEntry, rollout: string, instruction: string): StepResult {
  const about = { instruction, task_id: id };
  // A client of MCP tools sees the metadata and no other field of this observation.
  return { observation: { output: '', ...about, metadata: { ...about, rollout } }, reward: null, done: false };
}

function neverBegan({ id }: TaskEntry, { outcome, failure }: EpisodeEnd): OpenEnvError {
  const why = failure === null ? '' : `: ${failure.type}: ${failure.message}`;
  return new OpenEnvError(
    'EXECUTION_ERROR',
    `the episode of task ${id} ended ${outcome === null ? '' : `as ${outcome} `}before it began${why}`,
  );
}

/** The tools of mini that the short forms of an action stand for. */
function replyOf(action: Action): ModelReply {
  if ('command' in action) return { tool: 'bash', arguments: { command: action.command } };
  if ('type' in action && action.type === 'call_tool') return { tool: action.tool_name, arguments: action.arguments };
  return { tool: 'submit', arguments: {} };
}

function observationOf(action: Action, output: string): Observation {
  if ('type' in action && action.type === 'call_tool') {
    return { tool_name: action.tool_name, result: output, error: null };
  }
  return { output };
}

/** Refuses a tool that the episode lacks, without a model call for it. */
function unknownTool(action: Action, tools: readonly OfferedTool[]): Observation | null {
  if (!('type' in action) || action.type !== 'call_tool') return null;
  const { tool_name } = action;
  if (tools.some(({ name }) => name === tool_name)) return null;
  const names = tools.map(({ name }) => name).join(', ');
  const message = `expected one of ${names}, got ${JSON.stringify(tool_name.slice(0, 100))}`;
  return { tool_name, result: '', error: { error_type: 'tool_not_found', message } };
}
