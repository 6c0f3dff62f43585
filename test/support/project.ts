/** Provides a project with a scripted model on loopback, and records what came over the wire. It has no tests of its own. */

import { expect } from 'bun:test'
import { join } from 'node:path'
import { type Nest, nest, type Result } from './cli.ts'
import { dialects, type Speech } from './dialects.ts'
import { type Fake, sends, startFake } from './vendor-fake.ts'

type Reply = { readonly role: string; readonly content: string }

export type Stage = Disposable & {
  readonly at: Nest
  /** Runs `agent -m go` with these arguments. */
  turn(args?: readonly string[]): Promise<Result>
  /** Returns the messages of each request, as they came over the wire. */
  asked(): readonly (readonly Reply[])[]
  /** Returns the tools of the latest request. */
  tools(): readonly { readonly name: string }[]
  /** Returns the system prompt of the latest request. */
  system(): string
  trust(): Promise<void>
  /** Stops the model. */
  hangUp(): void
}

const hello: Speech = { text: ['Hello.'] }
export const calls = (...wanted: readonly [name: string, args: object][]): Speech => ({
  calls: wanted.map(([name, args], n) => ({ id: `call_${n}`, name, args: [JSON.stringify(args)] })),
})

/** A model that sends these replies in turn, and then says hello for ever. */
export function stage(replies: readonly Speech[] = [], more = ''): Stage {
  const at = nest()
  const fake: Fake = startFake((_, n) => sends(dialects[0]?.events(replies[n] ?? hello) ?? []))
  at.config(
    `default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${fake.url}"\nmax_retries = 0\n${more}`,
  )
  const asked = () => fake.asked.map(({ text }) => JSON.parse(text).messages)
  return {
    at,
    turn: (args = []) => at.run(['agent', '-m', 'go', ...args]),
    asked,
    tools: () =>
      fake.asked
        .slice(-1)
        .flatMap(({ text }) => (JSON.parse(text).tools ?? []).map((tool: { function: { name: string } }) => tool.function)),
    system: () =>
      asked()
        .at(-1)
        ?.find(({ role }: Reply) => role === 'system')?.content ?? '',
    hangUp: fake.stop,
    trust: async () => expect((await at.run(['trust', at.workspace])).code).toBe(0),
    [Symbol.dispose]() {
      fake.stop()
      at[Symbol.dispose]()
    },
  }
}

export const results = (messages: readonly Reply[] = []) => messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
type Kept = { readonly path: string; readonly sha256: string; readonly text?: string }

/** Returns the instructions in the start entries of all runs, oldest first. */
export async function instructionsIn(at: Nest): Promise<readonly (readonly Kept[] | undefined)[]> {
  return (await bodiesOf(at, 'run.start')).map(({ instructions }) => instructions)
}

export async function bodiesOf(at: Nest, type: string) {
  const { Database } = await import('bun:sqlite')
  const database = new Database(join(at.home, '.braidclaw/memory.sqlite'), { readonly: true })
  const rows = database.query<{ body: string }, [string]>('SELECT body FROM journal WHERE type = ? ORDER BY seq').all(type)
  database.close()
  return rows.map(({ body }) => JSON.parse(body))
}
