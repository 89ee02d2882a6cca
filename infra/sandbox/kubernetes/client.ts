import type { AuthorizationV1Api, CoreV1Api, Exec, KubeConfig, NetworkingV1Api } from '@kubernetes/client-node';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure, ThrottledFailure } from '../../../workflows/contracts/failures.ts';
import { SandboxFailure } from '../failure.ts';

/** The connection to a cluster's API, as one namespace sees it. */
export interface Cluster {
  readonly namespace: string;
  readonly config: KubeConfig;
  readonly core: CoreV1Api;
  readonly networking: NetworkingV1Api;
  readonly authorization: AuthorizationV1Api;
  /** Opens WebSockets. */
  readonly sockets: Exec['handler'];
}

/** Opens the cluster that KUBECONFIG, `~/.kube/config` or the account of this Pod names. Makes no request. */
export async function openCluster(namespace: string): Promise<Cluster> {
  // Loaded only by those who use it, because it is large.
  const library = await import('@kubernetes/client-node');
  const config = new library.KubeConfig();
  try {
    config.loadFromDefault();
  } catch (cause) {
    const text = 'expected KUBECONFIG to name a readable kubeconfig, got none; correct the variable or the file';
    throw new SandboxFailure('SandboxUnavailable', text, { cause, evidence: errorMessage(cause).slice(0, 300) });
  }
  return {
    namespace,
    config,
    core: config.makeApiClient(library.CoreV1Api),
    networking: config.makeApiClient(library.NetworkingV1Api),
    authorization: config.makeApiClient(library.AuthorizationV1Api),
    sockets: new library.Exec(config).handler,
  };
}

const requestMs = 30_000;
const throttled = 429;
const status = z.object({ message: z.string() });
const withRetryAfter = z.object({ headers: z.object({ 'retry-after': z.coerce.number().nonnegative() }) });

/** The HTTP status of an error that the API server answered with. */
export function apiStatus(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'number' ? error.code : undefined;
}

/** The API server's own words in an error. */
export function apiMessage(error: unknown): string {
  const body = error instanceof Error && 'body' in error ? error.body : undefined;
  try {
    return status.parse(typeof body === 'string' ? JSON.parse(body) : body).message;
  } catch {
    return errorMessage(error).slice(0, 500);
  }
}

/**
 * Makes one request. Throws `SandboxUnavailable` if the API server does not answer or fails, a `ThrottledFailure` if it refuses for
 * now, and passes on what else it answers.
 */
export async function callApi<T>(request: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(unavailable(`no answer within ${requestMs / 1000} s`)), requestMs);
  try {
    return await Promise.race([request(), late.promise]);
  } catch (cause) {
    if (cause instanceof TemperFailure) throw cause;
    const code = apiStatus(cause);
    if (code === throttled) throw overloaded(cause);
    if (code === undefined || code >= 500) throw unavailable(apiMessage(cause), cause);
    throw cause;
  } finally {
    clearTimeout(timer);
  }
}

function unavailable(evidence: string, cause?: unknown): SandboxFailure {
  const text = 'expected the Kubernetes API to answer, got none; check the kubeconfig and `kubectl get pods`';
  return new SandboxFailure('SandboxUnavailable', text, { cause, evidence });
}

/** Explains a refusal for now, with the pause in seconds that the API server asked for. */
function overloaded(cause: unknown): ThrottledFailure {
  const seconds = withRetryAfter.safeParse(cause).data?.headers['retry-after'];
  const text = `the Kubernetes API takes no more requests for now: ${apiMessage(cause)}`;
  return new ThrottledFailure(text, seconds === undefined ? null : seconds * 1000, { cause });
}

/** Returns undefined for an object that does not exist. */
export function orIfMissing(error: unknown): undefined {
  if (apiStatus(error) === 404) return undefined;
  throw error;
}
