/** Prepares the targets of the probe: a temporary folder with canary files, and processes outside the sandbox, so that a broken one destroys nothing of value. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxSettings } from '../contract.ts'
import { fixedPath } from '../trial-key.ts'

export type Ground = {
  /** The content of the secret files; no attempt may print it. */
  readonly token: string
  /** A folder next to the workspace that no command may reach. */
  readonly outside: string
  readonly settings: Pick<
    SandboxSettings,
    | 'workspace'
    | 'home'
    | 'stateHome'
    | 'protectedPaths'
    | 'secretPaths'
    | 'forbiddenReads'
    | 'forbiddenCommands'
    | 'userPath'
    | 'allowedDomains'
    | 'limits'
  >
  remove(): void
}

/** Limits small enough that exceeding one in a broken sandbox costs little: the attempts stop by themselves just above them. */
const limits = { memoryBytes: 256 * 2 ** 20, totalMemoryBytes: 320 * 2 ** 20, processes: 48, fileBytes: 8 * 2 ** 20, cpuSeconds: 20 }

/** Create the sandbox under test with the returned `settings`. */
export function prepareGround(): Ground {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-probe-')))
  const token = `canary-${crypto.randomUUID()}`
  const at = (...names: string[]) => join(root, ...names)
  for (const path of ['workspace/nested/.git/hooks', 'workspace/private', 'outside', 'home/.ssh', 'home/.local/bin', 'state'])
    mkdirSync(at(path), { recursive: true })
  for (const path of ['home/.ssh/id_canary', 'state/receipt.key', 'workspace/private/secret.pem', 'workspace/nested/.env'])
    writeFileSync(at(path), token)
  writeFileSync(at('home/.local/bin/tool'), '#!/bin/sh\n', { mode: 0o755 })
  writeFileSync(at('workspace/nested/.git/config'), '[core]\n')
  return {
    token,
    outside: at('outside'),
    settings: {
      workspace: at('workspace'),
      home: at('home'),
      stateHome: at('state'),
      protectedPaths: [],
      secretPaths: [at('workspace/private/secret.pem')],
      forbiddenReads: ['.env'],
      forbiddenCommands: ['rm'],
      userPath: at('home/.local/bin'),
      allowedDomains: [],
      limits,
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

export type Outside = {
  /** The TCP port on 127.0.0.1 and the System V memory segment; both are 0 without perl. */
  readonly port: number
  readonly memory: number
  readonly abstractName: string
  /** Process number; its environment contains the token. */
  readonly victim: number
  isVictimAlive(): boolean
  /** @returns the doors that accepted a connection: tcp, abstract, outside, workspace */
  visits(): readonly string[]
  stop(): void
}

/** Ends when its input ends, so that it never outlives our process; 60 s at most. */
const server = String.raw`
use Socket; $| = 1; alarm 60;
my ($abstract, $outside, $workspace, $token) = @ARGV; my %doors;
socket($doors{tcp}, PF_INET, SOCK_STREAM, 0) && bind($doors{tcp}, sockaddr_in(0, INADDR_LOOPBACK)) or die "tcp $!";
for (["abstract", "\0$abstract"], ["outside", $outside], ["workspace", $workspace]) {
  socket($doors{$_->[0]}, PF_UNIX, SOCK_STREAM, 0) && bind($doors{$_->[0]}, pack_sockaddr_un($_->[1])) or die "$_->[0] $!";
}
listen($_, 5) for values %doors;
my $id = shmget(0, 128, 0600); shmwrite($id, $token, 0, length $token);
printf "ready %d %d\n", (sockaddr_in(getsockname($doors{tcp})))[0], $id;
while (1) {
  my $bits = ''; vec($bits, fileno($_), 1) = 1 for values %doors; vec($bits, 0, 1) = 1;
  select($bits, undef, undef, undef);
  last if vec($bits, 0, 1);
  for (keys %doors) { if (vec($bits, fileno($doors{$_}), 1)) { accept(my $guest, $doors{$_}); print "visit $_\n" } }
}
shmctl($id, 0, 0);`

/** Starts the targets outside the sandbox: a server that counts connections, and a process that no attempt may harm. */
export async function openOutside({ token, outside, settings }: Ground): Promise<Outside> {
  const abstractName = `braidclaw-probe-${crypto.randomUUID()}`
  const victim = Bun.spawn(['sleep', '60'], { env: { PATH: fixedPath, TOKEN: token }, stdio: ['ignore', 'ignore', 'ignore'] })
  const argv = ['perl', '-e', server, abstractName, join(outside, 'socket'), join(settings.workspace, 'socket'), token]
  const child = Bun.which('perl', { PATH: fixedPath })
    ? Bun.spawn(argv, { env: { PATH: fixedPath }, stdio: ['pipe', 'pipe', 'ignore'] })
    : undefined
  const lines = child === undefined ? undefined : reader(child.stdout)
  const [port = 0, memory = 0] = (await lines?.ready)?.split(' ').slice(1).map(Number) ?? []
  return {
    port,
    memory,
    abstractName,
    victim: victim.pid,
    isVictimAlive: () => victim.exitCode === null && victim.signalCode === null,
    visits: () => lines?.visits() ?? [],
    stop() {
      victim.kill()
      child?.stdin.end()
    },
  }
}

/** Reads the first line, and the door names of all later lines. */
function reader(stream: ReadableStream<Uint8Array>) {
  let text = ''
  const first = Promise.withResolvers<string>()
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true })
      const [line, ...rest] = text.split('\n')
      if (rest.length > 0) first.resolve(line ?? '')
    }
    first.resolve('')
  }
  void read().catch(() => first.resolve(''))
  return { ready: first.promise, visits: () => [...text.matchAll(/^visit (\w+)$/gm)].map(([, door]) => door ?? '') }
}
