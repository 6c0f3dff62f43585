/** Runs `braidclaw control` in a test home: init, the daemon on a free port, and commands that talk to it. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Invocation, type Nest, nest, type Result, type Started } from '../../support/cli.ts'

export type OwnControl = AsyncDisposable & {
  readonly at: Nest
  readonly url: string
  /** The operator token that `control init` kept. */
  readonly token: string
  readonly daemon: Started
  /** Runs `control WORDS…` against it. */
  run(words: readonly string[], invocation?: Invocation): Promise<Result>
  /** As `run`; throws when the command fails, and returns what it printed on stdout without the last newline. */
  out(words: readonly string[], invocation?: Invocation): Promise<string>
  /** As `out`, with --json, parsed. */
  json(words: readonly string[], invocation?: Invocation): Promise<ReturnType<typeof JSON.parse>>
  /** Starts a command that stays; it ends with the test. */
  start(words: readonly string[], invocation?: Invocation): Started
}

export async function ownControl(env: { readonly [name: string]: string } = {}, at: Nest = nest()): Promise<OwnControl> {
  const made = await at.run(['control', 'init'], { env })
  if (made.code !== 0) throw new Error(made.stderr)
  const daemon = at.start(['control', '--port', '0'], { env, timeoutMs: 600_000 })
  const url = await daemon.says(/ready: (https?:\/\/\S+?) /)
  const children: Started[] = []
  const invoked = (invocation: Invocation = {}) => ({ ...invocation, env: { ...env, CONTROLPLANE_API_URL: url, ...invocation.env } })
  const run: OwnControl['run'] = (words, invocation) => at.run(['control', ...words], invoked(invocation))
  const out: OwnControl['out'] = async (words, invocation) => {
    const { code, stdout, stderr } = await run(words, invocation)
    if (code !== 0) throw new Error(`control ${words.join(' ')}: ${code}: ${stderr}`)
    return stdout.trimEnd()
  }
  return {
    ...{ at, url, daemon, run, out },
    token: readFileSync(join(at.home, '.braidclaw/control/operator.token'), 'utf8').trim(),
    json: async (words, invocation) => JSON.parse(await out([...words, '--json'], invocation)),
    start(words, invocation) {
      const child = at.start(['control', ...words], { timeoutMs: 60_000, ...invoked(invocation) })
      children.push(child)
      return child
    },
    async [Symbol.asyncDispose]() {
      for (const { pid } of [...children, daemon])
        try {
          process.kill(pid, 'SIGKILL')
        } catch {}
      await Promise.all([...children, daemon].map(({ result }) => result))
      at[Symbol.dispose]()
    },
  }
}

/** Gives it two tasks, an agent with a key and a budget. */
export async function fillWithCommands(control: OwnControl): Promise<void> {
  for (const name of ['one', 'two'])
    await control.out(['task', 'add', `Do ${name} \u{1f600} '"\\`, '--role', 'a', '--context', '{"a":[1,null,"ä"]}'])
  await control.out(['agent', 'add', 'a', '--key'])
  await control.out(['budget', 'set', '--daily', '1000'])
}
