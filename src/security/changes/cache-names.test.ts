import { expect, test } from 'bun:test'
import { isCacheName } from './cache-names.ts'

test('a folder is a cache by its name, by its last two names, or beside the file that says so, and by nothing else', () => {
  const alone = () => false
  expect(isCacheName('__pycache__', 'src', alone)).toBe(true)
  expect([isCacheName('.cache', 'node_modules', alone), isCacheName('.cache', 'src', alone)]).toEqual([true, false])
  expect(isCacheName('target', 'src', (name) => name === 'Cargo.toml')).toBe(true)
  expect([isCacheName('target', 'src', alone), isCacheName('target', 'src', (name) => name === 'package.json')]).toEqual([false, false])
  expect(['src', 'constructor'].map((name) => isCacheName(name, '', () => true))).toEqual([false, false])
})
