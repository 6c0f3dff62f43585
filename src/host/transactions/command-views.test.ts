import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ranOn } from '../../tools/run-tool.ts'
import { createCommandViews, type ViewsOptions } from './command-views.ts'

test.each([
  ['the whole', false],
  ['a part', true],
])('caches wait beside the changes until they are applied, and are forgotten when only a part is: %s', async (_, isPart) => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-views-')))
  const [workspace, folder] = [join(root, 'workspace'), join(root, 'view')]
  for (const path of [workspace, join(folder, 'up'), join(folder, 'caches/.tox')]) mkdirSync(path, { recursive: true })
  writeFileSync(join(folder, 'caches.json'), '{}')
  const file = { kind: 'file', mode: 0o644, size: 1 } as const
  for (const name of ['a', 'b']) writeFileSync(join(folder, 'up', name), 'x')
  const changes = [
    { path: 'a', after: file },
    { path: 'b', after: file },
  ]
  const view = { id: 'tx-1', folder, changes: async () => changes, caches: async () => [], keepCaches: async () => {}, drop() {} }
  const waiting: boolean[] = []
  const store = {
    hold: async () => {},
    prune: async () => 0,
    async apply() {
      waiting.push(existsSync(join(folder, 'caches.json')), existsSync(join(folder, 'caches')))
      return { ok: true, count: 1 }
    },
  } as unknown as ViewsOptions['store']
  const review: ViewsOptions['review'] = async (_act, { changes: judged }) => ({
    review: {
      ...{ digest: judged.map(({ path }) => path).join(''), verdict: 'ask', rule: 'r', reason: '', summary: '', count: judged.length },
    },
  })
  const aboutOf = () => ({ run: 'run_1', call: 'call_1', conversation: 'con_1', tool: 'shell', at: 0 })
  const views = createCommandViews({ workspace, store, log() {}, review, admit: () => async () => ({ ok: true }), aboutOf })
  const act = { id: 'call_1' } as Parameters<typeof views.settle>[0]
  const ran = { status: 'allowed', output: '' } as const
  const { changes: judged } = await views.settle(act, { ...ran, [ranOn]: view }, new AbortController().signal)
  const revised = isPart ? await views.changesOf('call_1')?.revise?.({ only: ['a'] }) : undefined
  const part = revised?.ok ? { part: revised.part } : {}
  if (judged === undefined) throw new Error('nothing was judged')
  const done = await views.apply({ type: 'apply', id: 'call_1', review: judged, ...part } as never, new AbortController().signal, ran)
  expect([done.status, waiting]).toEqual(['allowed', [!isPart, !isPart]])
  rmSync(root, { recursive: true })
})
