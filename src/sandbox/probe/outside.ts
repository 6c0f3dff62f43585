/** Runs the probe's targets outside the sandbox: a server that counts connections, and a process that no attempt may harm. */

import { join } from 'node:path'
import { fixedPath } from '../install.ts'
import type { Ground } from './ground.ts'

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
