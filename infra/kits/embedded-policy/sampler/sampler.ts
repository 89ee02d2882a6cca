import { PolicyError } from '../errors.ts';
import type { ModelConfig } from '../model/config.ts';
import { checksumOf, createParameterLayout } from '../model/parameters.ts';
import { readWeights } from '../model/weights-file.ts';
import { createDecodingPass } from '../network/decoding-pass.ts';
import type {
  LoadWeightsOptions,
  LoadWeightsResult,
  PauseMode,
  SampleEvent,
  SampleRequest,
  SamplerStatus,
} from '../sampler-core.ts';
import { finish, prefillRowsPerStep, runningSlots, type SamplerState, step } from './batch-step.ts';
import { checkRequest } from './requests.ts';
import { createSequence, type Sequence } from './sequence.ts';
import { createSlotTable } from './slots.ts';

export interface SamplerOptions {
  readonly config: ModelConfig;
  readonly contextLength: number;
  readonly slots: number;
  readonly weights: Float32Array;
  readonly version: string;
}

/**
 * The sampler, on the thread that calls it: continuous batching over slots. A step advances every running sequence by one token
 * or by a part of its prompt. Between steps sequences join and leave, and weights change.
 */
export interface Sampler {
  /** Throws for a refused request; otherwise passes every event to `emit`, `finish` last. */
  submit(request: SampleRequest, emit: (event: SampleEvent) => void): void;
  abort(requestIds: readonly string[] | 'all'): number;
  pause(mode: PauseMode): Promise<SamplerStatus>;
  resume(): SamplerStatus;
  loadWeights(path: string, version: string, options?: LoadWeightsOptions): LoadWeightsResult;
  setVersion(version: string): SamplerStatus;
  status(): SamplerStatus;
  /** Whether `step` has anything to do. */
  ready(): boolean;
  step(): void;
}

export function createSampler(options: SamplerOptions): Sampler {
  const state = createState(options);
  const ready = (): boolean =>
    state.mode !== 'keep' && (runningSlots(state).length > 0 || (state.mode === 'running' && state.waiting.length > 0));
  return {
    submit: (request, emit) => submit(state, options, request, emit),
    abort: (requestIds) => abort(state, requestIds),
    pause: (mode) => pause(state, mode),
    resume() {
      state.mode = 'running';
      for (const resolve of state.drained.splice(0)) resolve();
      return status(state);
    },
    loadWeights: (path, version, { cache = 'keep' } = {}) =>
      loadWeights(state, options.config, { path, version, cache }),
    setVersion(version) {
      state.version = version;
      return status(state);
    },
    status: () => status(state),
    ready,
    step: () => step(state),
  };
}

function createState(options: SamplerOptions): SamplerState {
  const { config, contextLength, slots, weights, version } = options;
  const limits = { contextLength, slots, rows: slots + prefillRowsPerStep };
  const pass = createDecodingPass(config, createParameterLayout(config), limits);
  pass.setWeights(weights);
  return {
    pass,
    table: createSlotTable(slots, pass),
    waiting: [],
    drained: [],
    counts: { generatedTokens: 0, prefilledTokens: 0, reusedTokens: 0, steps: 0, busySlots: 0 },
    mode: 'running',
    generation: 0,
    version,
    checksum: checksumOf(weights),
  };
}

function submit(
  state: SamplerState,
  { config, contextLength }: SamplerOptions,
  request: SampleRequest,
  emit: (event: SampleEvent) => void,
): void {
  const checked = checkRequest(request, { vocabSize: config.vocabSize, contextLength });
  if (unfinished(state).some((sequence) => sequence.request.requestId === checked.requestId)) {
    const message = `requestId: expected one that no unfinished request has, got ${checked.requestId}; abort it first`;
    throw new PolicyError('duplicate-request', message, { field: 'requestId', got: checked.requestId });
  }
  state.waiting.push(createSequence(checked, emit));
}

function abort(state: SamplerState, requestIds: readonly string[] | 'all'): number {
  const named = ({ request }: Sequence): boolean => requestIds === 'all' || requestIds.includes(request.requestId);
  const chosen = unfinished(state).filter(named);
  for (const sequence of chosen) finish(state, sequence, 'abort');
  return chosen.length;
}

async function pause(state: SamplerState, mode: PauseMode): Promise<SamplerStatus> {
  state.mode = mode;
  if (mode === 'abort') abort(state, 'all');
  const busy = runningSlots(state).length > 0;
  if (mode === 'wait' && busy) await new Promise<void>((resolve) => state.drained.push(resolve));
  return status(state);
}

function loadWeights(
  state: SamplerState,
  config: ModelConfig,
  { path, version, cache }: { readonly path: string; readonly version: string; readonly cache: 'keep' | 'recompute' },
): LoadWeightsResult {
  const weights = readWeights(createParameterLayout(config), path);
  state.pass.setWeights(weights);
  state.generation += 1;
  state.checksum = checksumOf(weights);
  state.version = version;
  for (const slot of state.table.slots) {
    if (slot.sequence !== undefined && cache === 'recompute') slot.cached = 0;
    slot.generation = slot.sequence !== undefined && slot.cached === 0 ? state.generation : undefined;
  }
  return { version, checksum: state.checksum, inFlight: runningSlots(state).length };
}

function status(state: SamplerState): SamplerStatus {
  const { counts, mode, version, checksum, table } = state;
  const { generatedTokens, prefilledTokens, reusedTokens, steps, busySlots } = counts;
  return {
    running: runningSlots(state).length,
    waiting: state.waiting.length,
    paused: mode !== 'running',
    version,
    checksum,
    generatedTokens,
    prefilledTokens,
    reusedTokens,
    occupancy: steps === 0 ? 0 : busySlots / steps / table.slots.length,
  };
}

function unfinished(state: SamplerState): Sequence[] {
  return [...runningSlots(state).flatMap((slot) => slot.sequence ?? []), ...state.waiting];
}
