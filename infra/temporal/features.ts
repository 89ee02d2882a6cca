import { status } from '@grpc/grpc-js';
import { type Connection, isGrpcServiceError } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { isAtLeast } from './executable.ts';

/** A feature of a Temporal server that temper uses. */
export interface ServerFeature {
  readonly name: string;
  /** `unknown`: the server does not tell. */
  readonly state: 'on' | 'off' | 'unknown';
  /** `needed`: temper cannot work without it, as it is configured; `unused`: it would not use it. */
  readonly need: 'needed' | 'useful' | 'unused';
  /** The use that temper makes of it. */
  readonly use: string;
  readonly remedy: string;
}

type AnyConnection = Pick<Connection | NativeConnection, 'workflowService'>;

/** The first version that tells a pinned workflow about a newer version of the workers, and orders tasks by priority by default. */
const newVersion = '1.31.0';

/** Reads which features a server has for a namespace, and its version. */
export async function readFeatures(
  connection: AnyConnection,
  namespace: string,
  wanted: WantedFeatures,
): Promise<{ readonly version: string; readonly features: readonly ServerFeature[] }> {
  const { workflowService: service } = connection;
  const { serverVersion: version } = await service.getSystemInfo({});
  const { namespaceInfo } = await service.describeNamespace({ namespace });
  const isNew = isAtLeast(version, newVersion);
  return {
    version,
    features: [
      ...(await readNeeded(connection, namespace, wanted)),
      {
        name: 'upgrade at continue-as-new',
        state: isNew ? 'on' : 'off',
        need: wanted.versions ? 'useful' : 'unused',
        use: 'with worker versions, runs and sweeps move on to the current version when they continue as new',
        remedy: `upgrade the server to ${newVersion} or newer; until then each run ends with the version that began it`,
      },
      {
        name: 'priority',
        state: isNew ? 'on' : 'unknown',
        need: 'useful',
        use: 'the queues of images and evaluations serve runs before sweeps',
        remedy: `upgrade the server to ${newVersion} or newer, or set \`matching.useNewMatcher\` there`,
      },
      {
        name: 'fairness',
        state: 'unknown',
        need: 'useful',
        use: 'the same queues serve runs and sweeps in proportion to their weights',
        remedy: 'set `matching.enableFairness` at the server',
      },
      {
        name: 'workflow pause',
        state: namespaceInfo?.capabilities?.workflowPause === true ? 'on' : 'off',
        need: 'useful',
        use: '`temporal workflow pause` freezes a workflow',
        remedy: 'set `frontend.WorkflowPauseEnabled` at the server, or use `temper pause`',
      },
    ],
  };
}

/** The features that the configuration of a stack asks for. */
export interface WantedFeatures {
  /** True if the control workers are versions of a Worker Deployment. */
  readonly versions: boolean;
}

/** Throws an Error that says what to do if a server lacks a feature that temper cannot work without. */
export async function requireFeatures(
  connection: AnyConnection,
  namespace: string,
  wanted: WantedFeatures,
): Promise<void> {
  const features = await readNeeded(connection, namespace, wanted);
  const lacking = features.filter(({ need, state }) => need === 'needed' && state === 'off');
  if (lacking.length === 0) return;
  const what = lacking.map(({ name, use, remedy }) => `${name} (${use}): ${remedy}`);
  throw new Error(`the Temporal server lacks for the namespace ${namespace} ${what.join('; and ')}`);
}

/** Reads the features that a stack may be unable to work without, by asking for what they would list. */
async function readNeeded(
  { workflowService: service }: AnyConnection,
  namespace: string,
  { versions }: WantedFeatures,
): Promise<ServerFeature[]> {
  const page = { namespace, pageSize: 1 };
  return [
    {
      name: 'schedules',
      state: await stateOf(() => service.listSchedules({ namespace, maximumPageSize: 1 })),
      need: 'needed',
      use: 'they start the reaper and retention',
      remedy: 'upgrade the server, set `frontend.enableSchedules` there, or let the API key list schedules',
    },
    {
      name: 'worker versions',
      state: await stateOf(() => service.listWorkerDeployments(page)),
      need: versions ? 'needed' : 'unused',
      use: 'TEMPER_DEPLOYMENT makes control workers versions of a Worker Deployment',
      remedy:
        'upgrade the server to 1.29.1 or newer and set `system.enableDeploymentVersions` there, or unset TEMPER_DEPLOYMENT and TEMPER_BUILD_ID',
    },
  ];
}

/** The codes with which a server refuses a call that it does not know, or that is turned off. */
const refusals: readonly number[] = [status.UNIMPLEMENTED, status.PERMISSION_DENIED];

async function stateOf(call: () => Promise<unknown>): Promise<'on' | 'off'> {
  try {
    await call();
    return 'on';
  } catch (error) {
    if (isGrpcServiceError(error) && refusals.includes(error.code)) return 'off';
    throw error;
  }
}

/** Returns the build id of a deployment's current version; null if it has none, or the server does not know it. */
export async function currentBuildOf(
  { workflowService: service }: AnyConnection,
  namespace: string,
  deploymentName: string,
): Promise<string | null> {
  try {
    const { workerDeploymentInfo } = await service.describeWorkerDeployment({ namespace, deploymentName });
    return workerDeploymentInfo?.routingConfig?.currentDeploymentVersion?.buildId ?? null;
  } catch (error) {
    if (isGrpcServiceError(error) && error.code === status.NOT_FOUND) return null;
    throw error;
  }
}
