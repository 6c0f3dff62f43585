import { expect, test } from 'bun:test'
import { collect, type Script, stage } from '../../../../test/support/agent.ts'
import type { Judgement, Label } from '../../event.ts'
import { ruleOfTwo } from './egress.ts'

/** Calls by their id: `p` is a page, `k` a key, `s` sends, `l` reads a key and sends, `q` sends and asks anyway, `x` is a forbidden key. */
const verdicts: Record<string, Partial<Judgement>> = {
  p: { labels: ['reads_untrusted'], summary: 'GET https://a.example' },
  k: { labels: ['reads_private'], summary: 'read .env' },
  s: { labels: ['sends'], summary: 'POST https://b.example' },
  l: { labels: ['reads_private', 'sends'] },
  q: { labels: ['sends'], verdict: 'ask' },
  x: { labels: ['reads_private'], verdict: 'deny' },
}

/** Runs one reply per word of `rounds`, with a call for each letter. @returns what was asked about and what ran */
async function run(rounds: string, { by = 'ann', allow = false, ...own }: Partial<Script> & { by?: string; allow?: boolean } = {}) {
  const replies = rounds.split(' ').map((round) => ({ calls: [...round].map((id) => ({ id })) }))
  const { agent, acted } = stage({ replies: [...replies, { text: 'over' }], verdicts, limits: { maxSameResults: 99 }, ...own })
  const asked: string[] = []
  const rules = new Set<string>()
  await collect(agent, 'go', async (event) => {
    if (event.type !== 'approval_gate') return
    const gate = agent.gate(event.gateId)
    asked.push(gate?.call.id ?? '')
    rules.add(gate?.judgement.rule ?? '')
    reasons.push(gate?.judgement.reason ?? '')
    await agent.approve(event.gateId, { allow, by })
  })
  return { asked: asked.join(''), acted: acted.join(''), rules: [...rules], code: agent.ending()?.code }
}
const reasons: string[] = []

test('nothing is sent without a yes once content of others and something private were read, in whatever order', async () => {
  for (const rounds of ['p k s', 'k p s']) {
    expect(await run(rounds)).toEqual({ asked: 's', acted: rounds.slice(0, 3).replace(' ', ''), rules: [ruleOfTwo], code: 'denied' })
  }
  expect(reasons[0]).toBe(
    'content of others was read (GET https://a.example), and something private (read .env); what is sent now could carry it away',
  )
})

test('a yes lets it run, once, and the next one is asked about again', async () => {
  expect(await run('p k s', { allow: true })).toMatchObject({ asked: 's', acted: 'pks', code: 'answered' })
})

test('nobody to ask: it does not run, and the run says that an approval was needed', async () => {
  expect(await run('p k s', { by: 'nobody' })).toMatchObject({ acted: 'pk', code: 'approval_needed' })
})

test('one of the two alone asks nothing', async () => {
  expect(await run('p s')).toMatchObject({ asked: '', acted: 'ps', code: 'answered' })
  expect(await run('k s')).toMatchObject({ asked: '', acted: 'ks' })
  expect(await run('l')).toMatchObject({ asked: '', acted: 'l' })
})

test('a call that itself reads what is private and sends is asked about', async () => {
  expect(await run('p l')).toMatchObject({ asked: 'l', acted: 'p' })
})

test('calls of one reply count for each other, whichever comes first: they run at the same time', async () => {
  expect((await run('p sk')).asked).toBe('s')
  expect((await run('spk')).asked).toBe('s')
})

test('what the gate forbade was not read', async () => {
  expect(await run('p x s')).toMatchObject({ asked: '', acted: 'ps' })
})

test('what asks anyway is asked about once, for its own reason', async () => {
  expect(await run('p k q', { allow: true })).toMatchObject({ asked: 'q', acted: 'pkq', rules: ['test'] })
})

test('what was read earlier in the conversation counts', async () => {
  const labels: readonly Label[] = ['reads_private', 'reads_untrusted']
  expect(await run('s', { labels })).toMatchObject({ asked: 's', acted: '' })
  expect(await run('p s', { labels: ['reads_private'] })).toMatchObject({ asked: 's', acted: 'p' })
  expect(await run('s', { labels: ['reads_untrusted'] })).toMatchObject({ asked: '', acted: 's' })
})

test('a stop while the question is open refuses the call', async () => {
  const { agent, acted } = stage({
    replies: [{ calls: [{ id: 's' }] }, { text: 'over' }],
    verdicts,
    labels: ['reads_private', 'reads_untrusted'],
  })
  await collect(agent, 'go', (event) => {
    if (event.type === 'approval_gate') agent.cancel()
  })
  expect([acted, agent.ending()?.stop]).toEqual([[], 'cancelled'])
})
