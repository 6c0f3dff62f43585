/** What a host reads of its records and decides about them: conversations, runs, questions, receipts, changes, pins, the stop. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Host } from '../../src/host/api.ts'
import type { HostEvent } from '../../src/host/events/host-event.ts'
import { openRecords } from '../../src/host/open/open-records.ts'
import { begin, calling, events, type Place, place, says } from '../support/host.ts'

const write = (path: string, content = 'new') => calling('file_write', { path, content })

/** Runs one turn and answers its questions. @returns the conversation's id */
async function turn(host: Host, model: Parameters<typeof begin>[1], allow?: boolean): Promise<string> {
  const conversation = await begin(host, model)
  for await (const event of conversation.run('please do it'))
    if (event.type === 'approval_gate')
      await conversation.approve(event.gateId, { allow: allow ?? false, by: allow === undefined ? 'nobody' : 'ann' })
  return conversation.id
}

async function noticesOf(host: Host): Promise<string[]> {
  const seen: HostEvent[] = []
  const over = new AbortController()
  const last = host.events.latest()
  for await (const event of host.events.subscribe({ after: 0 }, over.signal)) {
    seen.push(event)
    if ((event.seq ?? 0) >= last || event.event.type === 'estop') over.abort()
  }
  return seen.map(({ event }) => event.type)
}

/** The projections and all receipts agree with the journal. */
async function assertSound(at: Place, host: Host): Promise<void> {
  const { receipts } = await host.records()
  expect(await receipts.verify({ deep: true })).toMatchObject({ ok: true, problems: [], unfinished: [] })
  const memory = openRecords(at.setup())
  expect((await memory.projections()).check()).toMatchObject({ equal: true })
  memory.close()
}

test('what does not exist is refused by its name', async () => {
  using at = place()
  const host = await at.host()
  const { conversations, runs, approvals, changes, pins } = await host.records()
  expect(() => conversations.read('nope')).toThrow('no conversation "nope"')
  expect(() => conversations.rename('nope', 'x')).toThrow('no conversation "nope"')
  expect(() => conversations.delete('nope', 'ann')).toThrow('no conversation "nope"')
  await expect(runs.show('nope')).rejects.toThrow('no run "nope"')
  await expect(approvals.show('nope')).rejects.toThrow('the approval "nope" does not exist')
  await expect(approvals.decide('nope', { allow: true, by: 'ann' })).rejects.toThrow('the approval "nope" does not exist')
  await expect(changes.undo('nope')).rejects.toThrow('no change sets are kept yet')
  expect(() => pins.list('../../etc')).toThrow('no agent "../../etc"')
  await host.close()
})

test('conversations and runs are listed page by page, newest first, and each of them once', async () => {
  using at = place()
  const host = await at.host()
  const made: string[] = []
  for (const name of ['a', 'b', 'c', 'd', 'e']) made.unshift(await turn(host, says(name)))
  const { conversations, runs } = await host.records()
  const ids: string[] = []
  for (let before: number | undefined; ; ) {
    const page = conversations.list({ limit: 2, ...(before === undefined ? {} : { before }) })
    ids.push(...page.conversations.map(({ conversationId }) => conversationId))
    before = page.next
    if (before === undefined) break
  }
  expect(ids).toEqual(made)
  const ofRuns: string[] = []
  for (let before: string | undefined; ; ) {
    const page = runs.list({ limit: 2, ...(before === undefined ? {} : { before }) })
    ofRuns.push(...page.runs.map(({ conversationId }) => conversationId))
    before = page.next
    if (before === undefined) break
  }
  expect(ofRuns).toEqual(made)
  expect(runs.list({ conversationId: made[2] ?? '' }).runs).toMatchObject([{ code: 'answered', running: false, channel: 'test' }])
  await host.close()
})

test('lists and search of one token leave the conversations of others out', async () => {
  using at = place()
  const host = await at.host()
  const [own, other] = [await turn(host, says('sunflower mine')), await turn(host, says('sunflower theirs'))]
  host.tokens.own(own, 'tok')
  const { conversations, runs, memory, approvals } = await host.records()
  const ids = (found: readonly { readonly conversationId: string }[]) => [...new Set(found.map(({ conversationId }) => conversationId))]
  expect(ids(conversations.list({ ownedBy: 'tok' }).conversations)).toEqual([own])
  expect(ids(runs.list({ ownedBy: 'tok' }).runs)).toEqual([own])
  expect(ids(memory.search({ query: 'sunflower', ownedBy: 'tok' }))).toEqual([own])
  expect(ids(memory.search({ query: 'flower', ownedBy: 'tok' }))).not.toContain(other)
  expect(ids(memory.search({ query: 'sunflower' })).sort()).toEqual([own, other].sort())
  await turn(host, write('x.txt'))
  expect(approvals.list({ ownedBy: 'tok' })).toEqual([])
  expect(approvals.list()).toHaveLength(1)
  await host.close()
})

test('a title is kept, told, redacted and survives a rebuild; one that is empty or long is refused', async () => {
  using at = place()
  const host = await at.host()
  const id = await turn(host, says('fine'))
  const { conversations } = await host.records()
  for (const title of ['', '  \n ', 'x'.repeat(201)])
    expect(() => conversations.rename(id, title)).toThrow('a title has 1 to 200 characters')
  expect(conversations.rename(id, ' Plans\nfor  May ').title).toBe('Plans for May')
  expect(conversations.list().conversations[0]?.title).toBe('Plans for May')
  expect(await noticesOf(host)).toContain('conversation_renamed')
  await assertSound(at, host)
  const memory = openRecords(at.setup())
  expect((await memory.projections()).rebuild()).toMatchObject({ ok: true })
  memory.close()
  expect(conversations.read(id).title).toBe('Plans for May')
  await host.close()
})

test('a deleted conversation leaves no text in the file, its receipts stay explained, and no number is used again', async () => {
  using at = place()
  const host = await at.host()
  const kept = await turn(host, calling('file_read', { path: 'notes.md' }))
  const gone = await turn(host, write('hibiscus.txt', 'marigold-secret'), true)
  const { conversations, runs, memory } = await host.records()
  const before = host.events.latest()
  const inFiles = () =>
    ['memory.sqlite', 'memory.sqlite-wal']
      .map((name) => join(at.home, name))
      .some((file) => existsSync(file) && readFileSync(file).includes('marigold-secret'))
  expect(inFiles()).toBe(true)
  expect(conversations.delete(gone, 'ann')).toEqual({ conversationId: gone, turns: 4, runs: 1 })
  expect(host.events.latest()).toBeGreaterThan(before)
  expect(() => conversations.read(gone)).toThrow('no conversation')
  expect(runs.list().runs.map(({ conversationId }) => conversationId)).toEqual([kept])
  expect(memory.search({ query: 'marigold' })).toEqual([])
  expect(await noticesOf(host)).toContain('conversation_deleted')
  await assertSound(at, host)
  const after = host.events.latest()
  await turn(host, says('again'))
  const { value } = await host.events.subscribe({ after }).next()
  expect(value?.seq).toBe(after + 1)
  await assertSound(at, host)
  await host.close()
  expect(inFiles()).toBe(false)
})

test('an altered receipt of a deletion explains nothing', async () => {
  using at = place()
  const host = await at.host()
  const gone = await turn(host, calling('file_read', { path: 'notes.md' }))
  const { conversations, receipts } = await host.records()
  conversations.delete(gone, 'ann')
  expect((await receipts.verify({ deep: true })).ok).toBe(true)
  await host.close()
  const { Database } = await import('bun:sqlite')
  const database = new Database(join(at.home, 'memory.sqlite'))
  database.run(`UPDATE operator_actions SET input = replace(input, '"last":1', '"last":9')`)
  database.close()
  const again = await at.host()
  expect((await (await again.records()).receipts.verify({ deep: true })).problems[0]).toContain('belongs to no run')
  await again.close()
})

test('a conversation with a turn under way is not deleted', async () => {
  using at = place()
  const host = await at.host()
  const conversation = await begin(host, write('a.txt'))
  const running = conversation.run('go')
  for (let next = await running.next(); next.value?.type !== 'approval_gate'; ) next = await running.next()
  const { conversations } = await host.records()
  expect(() => conversations.delete(conversation.id, 'ann')).toThrow('is under way')
  expect(conversations.read(conversation.id).messages.length).toBeGreaterThan(0)
  conversation.cancel()
  await running.return(undefined)
  await host.close()
})

test('a transcript shows each call with its judgement, answer, outcome, receipt and changes', async () => {
  using at = place()
  const host = await at.host()
  const conversationId = await turn(host, write('a.txt', 'one\n'), true)
  const { runs, receipts, changes } = await host.records()
  const shown = await runs.show('last')
  expect(shown).toMatchObject({ conversationId, code: 'answered', running: false, usage: expect.anything() })
  expect(shown.steps.map(({ type }) => type)).toEqual(['message', 'reply', 'call', 'reply'])
  const call = shown.steps[2]
  expect(call).toMatchObject({
    tool: 'file_write',
    input: { path: 'a.txt', content: 'one\n' },
    verdict: 'ask',
    risk: 'medium',
    approvals: [{ about: 'call', decision: { allow: true, by: 'ann' } }],
    outcome: { status: 'allowed' },
  })
  const receipt = call?.type === 'call' ? call.receipt : undefined
  expect(receipts.page({ after: 0 }).receipts.map(({ id }) => id)).toEqual([receipt ?? ''])
  const [set] = await changes.list({ runId: shown.runId })
  expect(set).toMatchObject({ state: 'applied', runId: shown.runId, tool: 'file_write' })
  expect((await changes.show(set?.name ?? '')).patch).toContain('+one')
  expect(await changes.undoRun(shown.runId)).toMatchObject([{ ok: true, count: 1 }])
  expect(existsSync(join(at.cwd, 'a.txt'))).toBe(false)
  expect(await noticesOf(host)).toContain('changes_undone')
  await expect(changes.undoRun(shown.runId)).rejects.toThrow('no changes that can be undone')
  await assertSound(at, host)
  await host.close()
})

test('a turn that waits goes on at once when its question is answered here, and a second answer is refused', async () => {
  using at = place()
  const host = await at.host()
  const conversation = await begin(host, write('a.txt'))
  const { approvals } = await host.records()
  const answers: Promise<unknown>[] = []
  for await (const event of conversation.run('go')) {
    if (event.type !== 'approval_gate') continue
    await expect(approvals.decide(event.gateId, { allow: true, by: 'web', files: ['zzz'] })).rejects.toThrow(
      'does not ask about several files',
    )
    answers.push(approvals.decide(event.gateId, { allow: true, by: 'web', note: 'fine' }))
    answers.push(approvals.decide(event.gateId, { allow: false, by: 'late' }).catch((error: Error) => error.message))
  }
  const [first, second] = await Promise.all(answers)
  expect(first).toMatchObject({ decidedBy: 'web', note: 'fine' })
  expect(second).toContain('see: braidclaw approvals list')
  expect(readFileSync(join(at.cwd, 'a.txt'), 'utf8')).toBe('new')
  await host.close()
})

test('a question that nobody waits for is answered on the record, and a no is told', async () => {
  using at = place()
  const host = await at.host()
  await turn(host, write('a.txt'))
  const { approvals } = await host.records()
  const [open] = approvals.list()
  await expect(approvals.decide(open?.id ?? '', { allow: true, by: 'web', always: true })).rejects.toThrow('no turn of this process waits')
  expect(await approvals.decide(open?.id ?? '', { allow: false, by: 'web', note: 'no' })).toMatchObject({
    state: 'denied',
    decidedBy: 'web',
  })
  expect(approvals.list()).toEqual([])
  expect(approvals.list({ all: true })).toHaveLength(1)
  expect(await noticesOf(host)).toContain('approval_closed')
  await expect(approvals.decide(open?.id ?? '', { allow: true, by: 'web' })).rejects.toThrow('was already denied by web')
  await host.close()
})

test('receipts come page by page from a number on, each of them once', async () => {
  using at = place()
  const host = await at.host()
  for (let count = 0; count < 5; count += 1) await turn(host, calling('file_read', { path: 'notes.md' }))
  const { receipts } = await host.records()
  const seqs: number[] = []
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page = receipts.page({ after, limit: 2 })
    seqs.push(...page.receipts.map(({ seq }) => seq))
    after = page.next
  }
  expect(seqs).toEqual([1, 2, 3, 4, 5])
  expect(receipts.page({ limit: 2 }).receipts.map(({ seq }) => seq)).toEqual([4, 5])
  expect(receipts.page({ after: 99 })).toEqual({ receipts: [], unreadable: 0 })
  await host.close()
})

test('pins are added, listed and removed; the stop is set and cleared', async () => {
  using at = place()
  const host = await at.host()
  const { pins, stop } = await host.records()
  expect(pins.add('I live in Lisbon')).toMatchObject({ number: 1 })
  expect(pins.list().map(({ text }) => text)).toEqual(['I live in Lisbon'])
  expect(() => pins.remove(7)).toThrow()
  pins.remove(1)
  expect(pins.list()).toEqual([])
  expect(stop.set('fire')).toEqual({ stopped: true, reason: 'fire', was: false })
  expect(stop.state()).toEqual({ stopped: true, reason: 'fire' })
  expect(stop.clear()).toEqual({ stopped: false, was: true })
  await host.close()
})

test('the tools are listed as "tool list" shows them', async () => {
  using at = place('[channels.cli]\ntools_allow = ["file_read"]\n')
  const host = await at.host()
  const tools = await (await host.records()).tools()
  expect(tools.find(({ name }) => name === 'file_read')).toMatchObject({ active: true, source: 'built in' })
  expect(tools.find(({ name }) => name === 'shell')).toMatchObject({ active: false, why: 'not in channels.cli.tools_allow' })
  await host.close()
})

test('events of a turn that was answered are the same when the conversation is read again', async () => {
  using at = place()
  const host = await at.host()
  const conversation = await begin(host, says('hello'))
  await events(conversation)
  const { conversations } = await host.records()
  expect(conversations.read(conversation.id).messages.map(({ role, content }) => [role, content])).toEqual([
    ['user', 'go'],
    ['assistant', 'hello'],
  ])
  await host.close()
})
