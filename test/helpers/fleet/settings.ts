import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { S3Place } from '../../../infra/store/s3/place.ts';
import { testRunVariable } from '../../runner/leftovers.ts';
import type { S3Server } from '../store/s3-server.ts';

/** The services that the parts of a fleet share, on this computer's loopback address. */
export interface FleetServices {
  /** The directory with the homes of all parts, and with the key of the stack. */
  readonly root: string;
  readonly s3: S3Server;
  readonly place: S3Place;
  readonly temporal: { readonly address: string; readonly namespace: string };
  /** The port of the policy server, which is engine and trainer. */
  readonly policyPort: number;
}

/** The settings whose services a host of a fleet reaches. */
export const servicesOfHosts = ['TEMPORAL_ADDRESS', 'TEMPER_STORE_ENDPOINT', 'TEMPER_ENGINE_URLS'];

const keyFile = ({ root }: FleetServices): string => join(root, 'key');

/** Writes the key that all parts of the stack share. */
export async function writeStackKey(services: FleetServices): Promise<void> {
  await writeFile(keyFile(services), randomBytes(32).toString('hex'), { mode: 0o600 });
}

/** Returns the settings of one part of a fleet, which has the home of this name. */
export function fleetSettings(services: FleetServices, home: string): Record<string, string> {
  const { root, s3, place, temporal, policyPort } = services;
  const { PATH = '', HOME = '', XDG_CACHE_HOME, [testRunVariable]: testRun } = process.env;
  const policy = `http://127.0.0.1:${policyPort}`;
  return {
    PATH,
    HOME,
    ...(XDG_CACHE_HOME !== undefined && { XDG_CACHE_HOME }),
    // The run of the tests ends what a test leaves behind.
    ...(testRun !== undefined && { [testRunVariable]: testRun }),
    ...s3.env,
    TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml',
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    TEMPER_HOME: join(root, home),
    TEMPER_HOST: home,
    TEMPER_STORE: `s3://${place.bucket}/${place.prefix}`,
    TEMPER_STORE_ENDPOINT: s3.url,
    TEMPER_STACK_KEY_FILE: keyFile(services),
    TEMPER_POLICY_PORT: String(policyPort),
    TEMPER_ENGINE_URLS: policy,
    TEMPER_TRAINER_URL: policy,
    TEMPER_HOST_LOST_AFTER: '30',
  };
}
