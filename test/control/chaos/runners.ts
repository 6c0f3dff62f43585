/** Real workers with real children in the chaos runs, and how long each child was seen alive, from the outside. */

import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../../src/kit/sha256.ts'
import { executable } from '../../support/cli.ts'
import type { World } from './world.ts'

export type RunnersOptions = {
  readonly folder: string
  readonly urls: readonly string[]
  /** One worker an agent. */
  readonly agents: readonly { readonly id: string; readonly role: string; readonly key: string }[]
  readonly world: World
  readonly leaseMs: number
}

export type Runners = {
  /** Kills one of them, which is started again. */
  kill(at: number): void
  /** Whether a child that would live long is there. */
  hasLongChild(): boolean
  /** Kills all of them, waits until no child is left or `mostMs` are over, and writes down when each was seen last. */
  end(mostMs: number): Promise<void>
}

/** The first attempt of some tasks takes far longer than a lease; nothing but the worker ends its processes in time. */
const scriptOf = (
  long: string,
) => `trap '' TERM; case $(cat) in *'"attempt":1,'*'"isLong":true'*|*'"isLong":true'*'"attempt":1,'*) setsid sleep ${long} & sleep ${long} ;; *) sleep 0.3 ;; esac
echo '{"type":"result","ok":true,"output":"done"}'`

export function startRunners({ folder, urls, agents, world, leaseMs }: RunnersOptions): Runners {
  const state = { isOver: false }
  // A length that nothing else on this machine has.
  const long = `10.0000${new URL(urls[0] ?? '').port}`
  const script = scriptOf(long)
  const seen = new Map<string, number>()
  const workers = agents.map((_, at) => start(at))

  function start(at: number): Bun.Subprocess {
    const { id = '', role = '', key = '' } = agents[at] ?? {}
    const words = ['control', 'worker', '--agent', id, '--role', role, '--runner', 'command', '--lease', String(leaseMs / 1_000)]
    const home = join(folder, id)
    mkdirSync(join(home, 'work'), { recursive: true })
    const env = { HOME: home, PATH: process.env.PATH ?? '', CONTROLPLANE_API_URL: urls[at % urls.length] ?? '' }
    return Bun.spawn([executable, ...words, '-C', join(home, 'work'), '--', '/bin/sh', '-c', script], {
      env: { ...env, CONTROLPLANE_API_KEY: key },
      ...{ cwd: home, stdin: 'ignore', stdout: 'ignore', stderr: Bun.file(join(folder, `${id}.log`)) },
    })
  }

  async function keep(at: number): Promise<void> {
    while (!state.isOver) {
      await workers[at]?.exited
      if (!state.isOver) workers[at] = start(at)
    }
  }

  function look(): number {
    const alive = tokensOfChildren(urls)
    for (const token of alive) seen.set(token, Date.now())
    return alive.size
  }

  const keeping = agents.map((_, at) => keep(at))
  const looking = setInterval(look, 250)
  return {
    kill(at) {
      workers[at % workers.length]?.kill('SIGKILL')
      world.happen({ kind: 'count', what: 'worker with a child killed' })
    },
    hasLongChild: () => processes('cmdline').some((words) => words === `sleep\0${long}\0`),
    async end(mostMs) {
      state.isOver = true
      for (const worker of workers) worker.kill('SIGKILL')
      await Promise.all(keeping)
      for (const end = performance.now() + mostMs; performance.now() < end && look() > 0; await Bun.sleep(100));
      clearInterval(looking)
      for (const [token, at] of seen) world.happen({ kind: 'child', token, at })
    },
  }
}

/** Returns the SHA-256 of each run token of these daemons that some process of this machine has in its environment. */
function tokensOfChildren(urls: readonly string[]): ReadonlySet<string> {
  return new Set(
    processes('environ')
      .filter((text) => urls.some((url) => text.includes(`CONTROLPLANE_API_URL=${url}\0`)))
      .flatMap((text) => /(?:^|\0)CONTROLPLANE_API_KEY=(cpr_[^\0]*)/.exec(text)?.[1] ?? [])
      .map(sha256),
  )
}

function processes(file: 'cmdline' | 'environ'): readonly string[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) ? [readFileSync(`/proc/${name}/${file}`, 'latin1')] : []
    } catch {
      return []
    }
  })
}
