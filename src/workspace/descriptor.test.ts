import { expect, test } from 'bun:test'
import { linkSync, mkdirSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { flags, hold, realPath } from './descriptor.ts'
import { createFixture } from './fixture.ts'

test('a held file is known by where it is now, and by no name once that is gone', () => {
  using fixture = createFixture()
  const at = (name: string) => join(fixture.root, name)
  writeFileSync(at('a'), '')
  mkdirSync(at('d'))
  using held = hold(at('a'), flags.look)
  renameSync(at('a'), at('d/b'))
  expect(realPath(held)).toBe(at('d/b'))
  linkSync(at('d/b'), at('other'))
  unlinkSync(at('d/b'))
  expect(realPath(held)).toBeUndefined()
  writeFileSync(at('d/b (deleted)'), 'another file')
  expect(realPath(held)).toBeUndefined()
})
