/** A host and its conversations in one process: what they share, how they take turns, and how they end. */

import { Database } from 'bun:sqlite'
import { expect, spyOn, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createAgent } from '../../src/agent.ts'
import { openHost } from '../../src/host/open/open-host.ts'
import { modelCallProvider } from '../../src/providers/model-call.ts'
import { begin, calling, events, held, place, says, waiting } from '../support/host.ts'
import { needs } from '../support/needs.ts'

const fine = () => modelCallProvider(says('fine'))

test('a second turn of one conversation is refused with busy, and one after close with closed; the first goes on', async () => {
  using at = place()
  const host = await at.host()
  const { model, asked, go } = waiting()
  const conversation = await begin(host, model)
  const first = events(conversation)
  while (asked() === 0) await Bun.sleep(1)
  expect(conversation.ending()).toBeUndefined()
  expect(await events(conversation)).toMatchObject([
    { type: 'error', code: 'busy' },
    { type: 'done', stopReason: 'error' },
  ])
  go()
  expect((await first).at(-1)).toMatchObject({ type: 'done', result: 'at last' })
  expect(conversation.ending()?.code).toBe('answered')
  await conversation.close()
  expect(await events(conversation)).toMatchObject([{ type: 'error', code: 'closed' }, { type: 'done' }])
  await host.close()
})

test('a turn that waits for its place can be cancelled, and then nothing of it was asked', async () => {
  using at = place('[limits]\nmax_turns_at_once = 1\n')
  const host = await at.host()
  const { model, asked, go } = waiting()
  const [first, second, third] = await Promise.all([begin(host, model), begin(host, model), begin(host, model)])
  const running = events(first)
  while (asked() === 0) await Bun.sleep(1)
  const given = new AbortController()
  const [cancelled, aborted] = [events(second), events(third, 'go', given.signal)]
  await Bun.sleep(20)
  expect(asked()).toBe(1)
  second.cancel()
  given.abort()
  for (const turn of [cancelled, aborted]) expect((await turn).at(-1)).toEqual({ type: 'done', stopReason: 'cancelled' })
  expect(second.ending()?.code).toBe('cancelled')
  const next = events(second)
  go()
  expect((await running).at(-1)).toMatchObject({ result: 'at last' })
  expect((await next).at(-1)).toMatchObject({ result: 'at last' })
  await host.close()
})

test('a conversation closed in mid-turn cancels it, also when nobody reads its events any more, and the home can be opened again', async () => {
  using at = place()
  const host = await at.host()
  const { model, asked } = waiting()
  const conversation = await begin(host, model)
  const forgotten = conversation.run('go')
  await forgotten.next()
  while (asked() === 0) await Bun.sleep(1)
  const other = await begin(host, says('fine'))
  await conversation.close()
  expect(conversation.ending()?.code).toBe('cancelled')
  expect((await events(other)).at(-1)).toMatchObject({ result: 'fine' })
  await host.close()
  const again = await at.host()
  const { id } = conversation
  const resumed = await again.conversation({ kind: 'resume', id }, { channel: 'test' })
  expect(resumed.id).toBe(id)
  await again.close()
})

test('closing the host cancels what runs and waits for it, and for no longer than it was told', async () => {
  using at = place()
  const host = await at.host()
  const { model, asked } = waiting()
  const turn = begin(host, model).then(events)
  while (asked() === 0) await Bun.sleep(1)
  const began = performance.now()
  await host.close(60_000)
  expect(performance.now() - began).toBeLessThan(4_000)
  expect((await turn).at(-1)).toMatchObject({ type: 'done', stopReason: 'cancelled' })
})

test('two hundred turns cancelled at once all end as cancelled, and the record of each has its end', async () => {
  using at = place()
  const host = await at.host()
  const { model, asked } = waiting()
  const open = await Promise.all(Array.from({ length: 200 }, () => begin(host, model)))
  const turns = open.map((conversation) => events(conversation))
  while (asked() < 200) await Bun.sleep(1)
  for (const conversation of open) conversation.cancel()
  const ends = (await Promise.all(turns)).map((all) => all.at(-1))
  expect(new Set(ends.map((end) => JSON.stringify(end)))).toEqual(new Set(['{"type":"done","stopReason":"cancelled"}']))
  await host.close()
  using db = new Database(join(at.home, 'memory.sqlite'), { readonly: true })
  expect(db.query("SELECT count(*) AS count FROM runs WHERE code = 'cancelled' AND ended IS NOT NULL").get()).toEqual({ count: 200 })
})

test('the emergency stop reaches all conversations, and is said once', async () => {
  using at = place()
  const lines: string[] = []
  const host = await openHost(at.setup({}, (line) => void lines.push(line)))
  const { model, asked } = waiting()
  const open = await Promise.all(Array.from({ length: 20 }, () => begin(host, model)))
  const turns = open.map((conversation) => events(conversation))
  while (asked() < 20) await Bun.sleep(1)
  await Bun.write(join(at.home, 'ESTOP'), 'enough')
  await Promise.all(turns)
  expect(new Set(open.map((conversation) => conversation.ending()?.code))).toEqual(new Set(['estop']))
  expect(lines.filter((line) => line.includes('estop triggered'))).toHaveLength(1)
  await host.close()
})

test.if(needs('bwrap'))(
  'two hundred open conversations hold one database, one watch and one idle sandbox; after close nothing is left',
  async () => {
    using at = place('[security]\napprove_all_medium = true\n')
    const shell = calling('shell', { command: 'echo hello' })
    // What the process opens once for all its children is there after the first.
    const start = held()
    const first = await at.host()
    await begin(first, shell).then(events)
    await first.close()
    while (held().children > start.children) await Bun.sleep(10)
    const before = held()
    const host = await at.host()
    const open = await Promise.all(Array.from({ length: 200 }, () => begin(host, shell)))
    // The watch begins a moment after the start.
    while (held().watches === before.watches) await Bun.sleep(10)
    const idle = held()
    expect(idle.descriptors - before.descriptors).toBeLessThan(12)
    expect(idle.watches - before.watches).toBe(1)
    expect(idle.children).toBe(before.children)
    const used = await Promise.all(open.slice(0, 8).map((conversation) => events(conversation)))
    for (const turn of used) expect(turn.at(-1)).toMatchObject({ type: 'done', result: expect.stringContaining('hello') })
    // One waits for the next command; what the commands had open goes with them.
    while (held().children - before.children !== 1 || held().descriptors - idle.descriptors >= 16) await Bun.sleep(10)
    await host.close()
    while (held().children > before.children || held().descriptors - before.descriptors > 2) await Bun.sleep(10)
    expect(held().watches).toBe(before.watches)
  },
  120_000,
)

test('agents of the library with equal settings load their provider once; with other settings they have another', async () => {
  using at = place('[providers.models.scripted]\nkind = "mock"\nfixture = "answers.json"\n')
  await Bun.write(join(at.home, 'answers.json'), JSON.stringify({ responses: [{ text: 'one' }, { text: 'two' }, { text: 'three' }] }))
  const common = { cwd: at.cwd, home: at.home, env: { HOME: at.home }, model: 'scripted/mock' }
  const agents = [createAgent(common), createAgent(common), createAgent({ ...common, maxTurns: 3 })]
  const said: unknown[] = []
  for (const agent of agents) {
    const all = await Array.fromAsync(agent.run('go'))
    const last = all.at(-1)
    said.push(last?.type === 'done' ? last.result : undefined)
  }
  for (const agent of agents) await agent.close()
  expect(said).toEqual(['one', 'two', 'one'])
})

test('a conversation that is called by a name is the same one in the next host, and another under another name', async () => {
  using at = place()
  const [first, again] = [await at.host(), await at.host()]
  const talk = await first.conversation({ kind: 'called', name: 'discord 1' }, { channel: 'test', provider: fine() })
  await events(talk, 'hello')
  await first.close()
  const same = await again.conversation({ kind: 'called', name: 'discord 1' }, { channel: 'test', provider: fine() })
  const other = await again.conversation({ kind: 'called', name: 'discord 2' }, { channel: 'test', provider: fine() })
  expect([same.id === talk.id, other.id === talk.id]).toEqual([true, false])
  await again.close()
})

test('a record that cannot be opened is a failure in words, and leaves nothing open', async () => {
  using at = place()
  mkdirSync(join(at.home, 'memory.sqlite'))
  const before = held()
  await expect(at.host()).rejects.toThrow(/memory\.sqlite/)
  expect(held().descriptors).toBe(before.descriptors)
})

test('nobody looks for answers while no question is open, and one look a round serves all who wait', async () => {
  using at = place()
  const begun = spyOn(globalThis, 'setInterval')
  try {
    const host = await at.host()
    const open = await Promise.all(Array.from({ length: 20 }, () => begin(host, calling('file_write', { path: 'a.txt', content: 'x' }))))
    const turns = open.map((conversation) => events(conversation))
    while (host.questions().length < 20) await Bun.sleep(1)
    expect(begun).toHaveBeenCalledTimes(1)
    for (const { id, conversationId } of host.questions()) {
      const asking = open.find((conversation) => conversation.id === conversationId)
      expect(await asking?.approve(id, { allow: false, by: 'test' })).toBeUndefined()
    }
    await Promise.all(turns)
    expect(host.questions()).toEqual([])
    await host.close()
  } finally {
    begun.mockRestore()
  }
})
