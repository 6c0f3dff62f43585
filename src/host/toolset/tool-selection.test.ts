import { expect, test } from 'bun:test'
import type { Trial } from '../../sandbox/trial.ts'
import { toolsForModel } from '../run/prompt-builder.ts'

const specs = ['time', 'shell', 'http'].map((name) => ({ name, description: '', parameters: { type: 'object' as const } }))

async function told(trial: Trial, from = specs) {
  const said: unknown[] = []
  const asked = { count: 0 }
  const state = async () => {
    asked.count++
    return trial
  }
  const left = await toolsForModel(from, { state, log: (...words) => void said.push(words) })
  return { names: left.map(({ name }) => name), said, asked: asked.count }
}

test('without a sandbox that works the model is not told of the shell, and the operator why', async () => {
  const { names, said } = await told({ ok: false, missing: 'it is broken; mend it', why: 'it is broken', remedy: ['mend it'] })
  expect(names).toEqual(['time', 'http'])
  expect(said).toEqual([['warn', 'shell tool off', { why: 'no sandbox: it is broken; mend it' }]])
})

test('with one it is told of all tools', async () => {
  expect(await told({ ok: true })).toEqual({ names: ['time', 'shell', 'http'], said: [], asked: 1 })
})

test('for tools without a shell nothing is tried', async () => {
  expect(await told({ ok: false, missing: '', why: '', remedy: [] }, specs.slice(0, 1))).toEqual({ names: ['time'], said: [], asked: 0 })
})
