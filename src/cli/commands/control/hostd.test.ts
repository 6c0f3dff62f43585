import { expect, test } from 'bun:test'
import { idByName } from './hostd.ts'

const lines = ['root:x:0:0:root:/root:/bin/sh', 'broken:x', 'empty:x::', '+::::::', 'words:x:many:', 'minus:x:-1:', 'ops:x:990:', ''].join(
  '\n',
)
const find = (name: string) => idByName('group', name, () => lines)

test('a name without a number in its line is nobody, and above all not root', () => {
  for (const name of ['broken', 'empty', '+', 'words', 'minus', 'nobody', ''])
    expect(() => find(name)).toThrow(`the group "${name}" does not exist`)
})

test('a name has the number of its line, and a number is itself', () => {
  expect([find('ops'), find('root'), find('77')]).toEqual([990, 0, 77])
})
