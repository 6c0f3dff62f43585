import { expect, test } from 'bun:test'
import { offered } from './offered.ts'

const specs = ['time', 'shell', 'http'].map((name) => ({ name, description: '', parameters: { type: 'object' as const } }))

function told(sandbox: 'auto' | 'bubblewrap' | 'landlock' | 'none' | undefined, has: boolean) {
  const said: unknown[] = []
  const names = offered(specs, { sandbox, has: () => has, log: (...words) => void said.push(words) }).map(({ name }) => name)
  return { names, said }
}

test('without bubblewrap the model is not told of the shell, and the operator of what to install', () => {
  for (const kind of [undefined, 'auto', 'bubblewrap'] as const) {
    const { names, said } = told(kind, false)
    expect(names).toEqual(['time', 'http'])
    expect(said).toEqual([['warn', 'shell tool off', { why: expect.stringContaining('apt install bubblewrap') }]])
  }
})

test('it is told of all of them with bubblewrap, and when another way was asked for by name', () => {
  for (const [kind, has] of [
    ['auto', true],
    ['landlock', false],
    ['none', false],
  ] as const)
    expect(told(kind, has)).toEqual({ names: ['time', 'shell', 'http'], said: [] })
})

test('who has no shell anyway is told nothing', () => {
  const said: unknown[] = []
  expect(offered(specs.slice(0, 1), { has: () => false, log: (...words) => void said.push(words) })).toHaveLength(1)
  expect(said).toEqual([])
})
