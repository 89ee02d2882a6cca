import type {
  AuthorizationV1Api,
  CoreV1Api,
  Exec,
  Informer,
  KubeConfig,
  NetworkingV1Api,
  RequestContext,
  SecurityAuthentication,
  V1Pod,
  Watch,
} from '@kubernetes/client-node';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure, ThrottledFailure } from '../../../workflows/contracts/failures.ts';
import { LastingRefusal, SandboxFailure } from '../failure.ts';

/** The connection to a cluster's API, as one namespace sees it. */
export interface Cluster {
  readonly namespace: string;
  readonly config: KubeConfig;
  readonly core: CoreV1Api;
  readonly networking: NetworkingV1Api;
  readonly authorization: AuthorizationV1Api;
  /** Opens WebSockets. */
  readonly sockets: Exec['handler'];
  /** Creates a watch of the namespace's Pods with these labels, which has not begun. It lists them first. Times in its Pods are texts. */
  informOfPods(labelSelector: string, onListed: () => void): Informer<V1Pod>;
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
  const requests = library.createConfiguration({
    baseServer: new library.ServerConfiguration(serverOf(config), {}),
    authMethods: { default: keepConnections(config) },
  });
  const core = new library.CoreV1Api(requests);
  return {
    namespace,
    config,
    core,
    networking: new library.NetworkingV1Api(requests),
    authorization: new library.AuthorizationV1Api(requests),
    sockets: new library.Exec(config).handler,
    informOfPods: (labelSelector, onListed) => {
      const path = `/api/v1/namespaces/${namespace}/pods`;
      const list = async () => {
        const listed = await callApi(namespace, () => core.listNamespacedPod({ namespace, labelSelector }));
        onListed();
        return listed;
      };
      return new library.ListWatch(path, withReportedErrors(new library.Watch(config)), list, false, labelSelector);
    },
  };
}

/** Has a watch report errors of its credentials, too. The library leaves them unhandled, which would end this process. */
function withReportedErrors(watch: Watch): Watch {
  const begin = watch.watch.bind(watch);
  watch.watch = (path, query, onChange, onEnd) =>
    begin(path, query, onChange, onEnd).catch((error: unknown) => {
      onEnd(error);
      return new AbortController();
    });
  return watch;
}

function serverOf(config: KubeConfig): string {
  const server = config.getCurrentCluster()?.server;
  if (server !== undefined) return server;
  const text = 'expected KUBECONFIG to name a cluster in its current context, got none; correct the file';
  throw new SandboxFailure('SandboxUnavailable', text);
}

/** The time for which connections are made with the same certificates, which may be replaced in their files. */
const sameCertificatesMs = 600_000;

/** Authenticates as the kubeconfig says, and keeps connections open: the library itself would open one for each request. */
function keepConnections(config: KubeConfig): SecurityAuthentication {
  let connections: ReturnType<RequestContext['getDispatcher']>;
  let untilMs = 0;
  return {
    getName: () => config.getName(),
    applySecurityAuthentication: async (request) => {
      await config.applySecurityAuthentication(request);
      if (performance.now() > untilMs) {
        connections = request.getDispatcher();
        untilMs = performance.now() + sameCertificatesMs;
      }
      if (connections !== undefined) request.setDispatcher(connections);
    },
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
    // The library drops the body of this one, and lists its headers.
    return apiStatus(error) === 401 ? 'Unauthorized' : errorMessage(error).slice(0, 500);
  }
}

/**
 * Makes one request about a namespace. Throws `SandboxUnavailable` if the API server does not answer, fails or does not allow the
 * request, a `ThrottledFailure` if it refuses for now, and passes on what else it answers.
 */
export async function callApi<T>(namespace: string, request: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(unavailable(`no answer within ${requestMs / 1000} s`)), requestMs);
  try {
    return await Promise.race([request(), late.promise]);
  } catch (cause) {
    if (cause instanceof TemperFailure) throw cause;
    const code = apiStatus(cause);
    if (code === throttled) throw overloaded(cause);
    if (code === 401) throw refusedAccount(cause);
    if (code !== undefined && code < 500 && ofPolicy.test(apiMessage(cause))) throw deniedByPolicy(namespace, cause);
    if (code === 403) throw forbidden(namespace, cause);
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

function refusedAccount(cause: unknown): SandboxFailure {
  const text = 'the cluster does not accept the credentials of this account; renew its kubeconfig';
  return new LastingRefusal(text, { cause, evidence: apiMessage(cause) });
}

/** The words of a webhook, of a ValidatingAdmissionPolicy and of a LimitRange, which answer with several codes. */
const ofPolicy = /admission webhook .* denied the request|ValidatingAdmissionPolicy .* denied|per (Container|Pod) is/s;

/** Whether the rules of a namespace or cluster forbid a Pod for what it may do, rather than for its size or for now. */
export const isForbidden = (error: unknown): error is SandboxFailure & { readonly evidence: string } =>
  error instanceof SandboxFailure && forbids.test(error.evidence ?? '');

const forbids = /violates PodSecurity|admission webhook .* denied the request|ValidatingAdmissionPolicy .* denied/is;

/** Explains a refusal by a policy of the cluster's operators, which may look at anything in a Pod. */
function deniedByPolicy(namespace: string, cause: unknown): SandboxFailure {
  const text = `a policy of namespace ${namespace} forbids this sandbox; change the policy, or use another namespace`;
  return new SandboxFailure('SandboxUnavailable', text, { cause, evidence: apiMessage(cause) });
}

/** Explains why this account may not do what it asked for. */
function forbidden(namespace: string, cause: unknown): SandboxFailure {
  const evidence = apiMessage(cause);
  const fail = (text: string): SandboxFailure => new SandboxFailure('SandboxUnavailable', text, { cause, evidence });
  if (/exceeded quota|status unknown for quota/i.test(evidence)) {
    return fail(`the quota of namespace ${namespace} is used up; it is tried again, or raise the ResourceQuota`);
  }
  if (/violates PodSecurity/i.test(evidence)) {
    return new LastingRefusal(
      `the Pod Security of namespace ${namespace} forbids sandboxes; label it pod-security.kubernetes.io/enforce=baseline`,
      { cause, evidence },
    );
  }
  if (/RuntimeClass .* not found/i.test(evidence)) {
    return fail('the cluster has no such RuntimeClass; correct TEMPER_KUBERNETES_RUNTIME_CLASS');
  }
  if (/unable to create new content .* being terminated/i.test(evidence)) {
    return fail(`the namespace ${namespace} is being deleted; use another`);
  }
  if (/cannot \S+ resource/.test(evidence)) {
    return fail(
      `this account lacks a right that sandboxes need in namespace ${namespace}; give it the one in the evidence`,
    );
  }
  return fail(`the cluster forbids what sandboxes need in namespace ${namespace}; see the evidence`);
}

export const needsImageVolumes =
  'the cluster mounts no images as volumes, which sandboxes need; use Kubernetes 1.35 or later, or turn its gate ImageVolume on';

/** Explains why the API server did not create an object. */
export function unmade(namespace: string, error: unknown): unknown {
  if (apiStatus(error) === 404) {
    const text = `the namespace ${namespace} does not exist; create it with kubectl`;
    return new SandboxFailure('SandboxUnavailable', text, { cause: error, evidence: apiMessage(error) });
  }
  if (apiStatus(error) !== 422) return error;
  const details = { cause: error, evidence: apiMessage(error) };
  if (/must specify a volume type/.test(details.evidence)) return new LastingRefusal(needsImageVolumes, details);
  const text = 'the cluster takes the Pod of this task for invalid; correct the task, or the settings of Kubernetes';
  return new SandboxFailure('UnsupportedTask', text, details);
}

/** Returns undefined for an object that does not exist. */
export function orIfMissing(error: unknown): undefined {
  if (apiStatus(error) === 404) return undefined;
  throw error;
}
