import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  PutBucketPolicyCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { S3Place } from '../../../infra/store/s3/place.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import { until } from '../until.ts';
import { locateVersitygw } from './versitygw.ts';

export const testBucket = 'temper-test';

/** A real S3 server of one test file, on a directory that the test can look into. */
export interface S3Server {
  readonly url: string;
  /** The credentials, as every AWS client reads them from the environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Returns a place in the bucket where nothing is. */
  place(change?: Partial<S3Place>): S3Place;
  /** Makes an object as old as the beginning of the epoch. */
  age(place: S3Place, key: string): Promise<void>;
  /** Changes the bytes of an object behind the back of the server. */
  damage(place: S3Place, key: string): Promise<void>;
  /** Begins the upload of a large object, as a process does that is killed before its end. */
  beginUpload(place: S3Place, key: string): Promise<void>;
  /** Adds an account that may read and list the bucket and change nothing, and returns its credentials. */
  addReader(): Promise<Readonly<Record<string, string>>>;
  /** Kills the server; its data stays. */
  kill(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Starts an S3 server, and gives this process its credentials. */
export async function startS3Server(): Promise<S3Server> {
  const executable = await locateVersitygw({ env: process.env, progress: (line) => console.error(line) });
  const directory = await mkdtemp(join(tmpdir(), 'temper-s3-'));
  const data = join(directory, 'data');
  const accounts = join(directory, 'accounts');
  await mkdir(data);
  await mkdir(accounts);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = { AWS_ACCESS_KEY_ID: 'temper-test', AWS_SECRET_ACCESS_KEY: randomBytes(16).toString('hex') };
  Object.assign(process.env, env);
  const fileOf = ({ prefix }: S3Place, key: string): string => join(data, testBucket, prefix, key);
  let running: { readonly end: () => Promise<void> } | null = null;

  async function start(): Promise<void> {
    const options = ['--port', `127.0.0.1:${port}`, '--quiet', '--keep-alive', '--iam-dir', accounts];
    const child = spawn(executable, [...options, 'posix', data], {
      env: { ...process.env, ROOT_ACCESS_KEY: env.AWS_ACCESS_KEY_ID, ROOT_SECRET_KEY: env.AWS_SECRET_ACCESS_KEY },
      stdio: 'ignore',
    });
    const exited = once(child, 'exit');
    const end = async (): Promise<void> => {
      child.kill('SIGKILL');
      await exited;
    };
    running = { end };
    await until(() => answers(port));
  }

  async function addReader(): Promise<Readonly<Record<string, string>>> {
    const reader = { AWS_ACCESS_KEY_ID: 'reader', AWS_SECRET_ACCESS_KEY: randomBytes(16).toString('hex') };
    const { AWS_ACCESS_KEY_ID: name, AWS_SECRET_ACCESS_KEY: secret } = reader;
    const words = ['admin', 'create-user', '--access', name, '--secret', secret, '--role', 'user'];
    const admin = { ADMIN_ACCESS_KEY: env.AWS_ACCESS_KEY_ID, ADMIN_SECRET_KEY: env.AWS_SECRET_ACCESS_KEY };
    await promisify(execFile)(executable, words, { env: { ...admin, ADMIN_ENDPOINT_URL: url } });
    await letRead(url, name);
    return reader;
  }

  async function kill(): Promise<void> {
    await running?.end();
    running = null;
  }

  await start();
  await createBucket(url);
  return {
    url,
    env,
    place: (change = {}) => {
      const prefix = `stacks/${randomBytes(6).toString('hex')}`;
      return { kind: 's3', bucket: testBucket, prefix, endpoint: url, region: 'us-east-1', pathStyle: true, ...change };
    },
    age: (place, key) => utimes(fileOf(place, key), 0, 0),
    damage: (place, key) => writeFile(fileOf(place, key), 'other'),
    beginUpload: ({ prefix }, key) => beginUpload(url, `${prefix}/${key}`),
    addReader,
    kill,
    start,
    async close() {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function createBucket(endpoint: string): Promise<void> {
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: testBucket }));
  client.destroy();
}

async function letRead(endpoint: string, account: string): Promise<void> {
  const bucket = `arn:aws:s3:::${testBucket}`;
  const allowed = { Effect: 'Allow', Principal: { AWS: [account] } };
  const Policy = JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      { ...allowed, Action: ['s3:ListBucket'], Resource: [bucket] },
      { ...allowed, Action: ['s3:GetObject'], Resource: [`${bucket}/*`] },
    ],
  });
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
  await client.send(new PutBucketPolicyCommand({ Bucket: testBucket, Policy }));
  client.destroy();
}

async function beginUpload(endpoint: string, Key: string): Promise<void> {
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
  const upload = { Bucket: testBucket, Key };
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(upload));
  await client.send(new UploadPartCommand({ ...upload, UploadId, PartNumber: 1, Body: Buffer.alloc(1000) }));
  client.destroy();
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('close', () => socket.destroy());
    socket.once('connect', () => socket.end());
  });
}
