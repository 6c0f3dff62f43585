/** The events that the hub reads from the journal are those of a replay of the run, and nothing of the hub is loaded before it is used. */

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Conversation } from '../../src/host/api.ts'
import type { ModelCall } from '../../src/providers/model-call.ts'
import type { AgentEvent } from '../../src/runtime/event.ts'
import { begin, calling, place, says } from '../support/host.ts'
import { needs } from '../support/needs.ts'

const own = ['init', 'thinking', 'text', 'tool_use', 'tool_result', 'approval_gate', 'iteration', 'error', 'done']

/** A model that makes these calls in one reply, and then says that it is done. */
const calls = (...asked: readonly (readonly [name: string, input: object])[]): ModelCall =>
  async function* (messages) {
    if (messages.at(-1)?.role === 'tool') return yield { type: 'text', content: 'done' }
    yield { type: 'text', content: 'I try' }
    for (const [name, input] of asked) yield { type: 'tool_use', name, input: { ...input } }
  }

const failing: ModelCall = async function* (messages) {
  if (messages.length > 0) throw new Error('the model broke')
  yield { type: 'text', content: '' }
}

type Case = {
  readonly model: ModelCall
  readonly config?: string
  readonly onEvent?: (event: AgentEvent, conversation: Conversation) => void
}

const yes: Case['onEvent'] = (event, conversation) => {
  if (event.type === 'approval_gate') void conversation.approve(event.gateId, { allow: true, by: 'ann' })
}
const no: Case['onEvent'] = (event, conversation) => {
  if (event.type === 'approval_gate') void conversation.approve(event.gateId, { allow: false, by: 'ann', note: 'not now' })
}
const read = (path: string) => ['file_read', { path }] as const
const write = (path: string) => ['file_write', { path, content: path }] as const

const cases: { readonly [name: string]: Case } = {
  'an answer': { model: says('hello') },
  'a call': { model: calling('file_read', { path: 'notes.md' }) },
  'more calls than run at once': { model: calls(...Array.from({ length: 9 }, (_, at) => read(`${at}.md`))) },
  'a denied call between others': { model: calls(read('notes.md'), read('/etc/shadow'), read('b.md')) },
  'a call that is allowed': { model: calls(write('a'), read('notes.md'), write('b')), onEvent: yes },
  'a call that is refused': { model: calls(write('a'), read('notes.md')), onEvent: no },
  'an unknown tool': { model: calls(['nope', {}], read('notes.md')) },
  'a limit': { model: calling('file_read', { path: 'notes.md' }), config: '[limits]\nmax_tool_rounds = 1\n' },
  'the same result again and again': {
    async *model(messages) {
      yield messages.length > 40 ? { type: 'text', content: 'x' } : { type: 'tool_use', name: 'file_read', input: { path: 'notes.md' } }
    },
  },
  'a model that fails': { model: failing },
  'a cancelled turn': {
    model: calls(write('a'), read('notes.md')),
    onEvent: (event, conversation) => event.type === 'approval_gate' && conversation.cancel(),
  },
}

async function assertEqual({ model, config = '', onEvent }: Case): Promise<void> {
  using at = place(config)
  const host = await at.host()
  const conversation = await begin(host, model)
  for await (const event of conversation.run('go')) onEvent?.(event, conversation)
  const replayed = await host.replay(conversation.runId() ?? '', [])
  const stored: AgentEvent[] = []
  for await (const { event } of host.events.subscribe({ after: 0 })) {
    if (isOwn(event)) stored.push(event)
    if (event.type === 'run_ended') break
  }
  expect(replayed.events.length).toBeGreaterThan(1)
  expect(stored).toEqual([...replayed.events])
  await host.close()
}

const isOwn = (event: { readonly type: string }): event is AgentEvent => own.includes(event.type)

for (const [name, one] of Object.entries(cases)) test(`${name}: stored as replayed`, () => assertEqual(one))

test.if(needs('bwrap'))('changes that are allowed, and changes that are refused: stored as replayed', async () => {
  const model = calls(['shell', { command: 'echo x > made.txt' }])
  await assertEqual({ model, onEvent: yes })
  await assertEqual({ model, onEvent: no })
})

test('a turn without a subscriber loads nothing of the hub or of the records', async () => {
  using at = place()
  const code = `
    import { begin, events, hostOf, says } from ${JSON.stringify(join(import.meta.dir, '../support/host.ts'))}
    const host = await hostOf(${JSON.stringify(at.home)}, ${JSON.stringify(at.cwd)})
    await events(await begin(host, says('hello')))
    const of = (name) => Object.keys(require.cache).some((path) => path.endsWith(name))
    const loaded = () => ['/host/open/open-home.ts', '/host/events/hub.ts', '/journal/journal-feed.ts', '/host/records/records.ts'].map(of).join()
    const before = loaded()
    await host.records()
    await host.events.subscribe({ after: 0 }).next()
    console.log(before, loaded())
    await host.close()`
  const child = Bun.spawn([process.execPath, '-e', code], {
    stdout: 'pipe',
    stderr: 'inherit',
    env: { PATH: process.env.PATH, HOME: at.cwd },
  })
  expect((await child.stdout.text()).trim()).toBe('true,false,false,false true,true,true,true')
})
