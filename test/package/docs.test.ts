/** Pages made from code are what the code says now, and the README stays short. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pages } from '../../scripts/docs.ts'

const root = join(import.meta.dir, '../..')

for (const [path, text] of Object.entries(await pages())) {
  test(`${path} is not stale (npm run docs)`, () => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(text)
  })
}

test('every page that the README links to exists', () => {
  const links = [...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/\]\(([^)#]+)\)/g)].map(([, path]) => path ?? '')
  expect(links.length).toBeGreaterThan(4)
  for (const link of links) expect(() => readFileSync(join(root, link))).not.toThrow()
})

test('every file that AGENTS.md names by its path exists', () => {
  const text = readFileSync(join(root, 'AGENTS.md'), 'utf8')
  const rows = text.split('\n').filter((line) => line.startsWith('| ') && line.includes('.ts`'))
  const paths = rows.flatMap((row) => [...row.matchAll(/`([a-z][\w-]*\/[\w/.-]+)`/g)].map(([, path = '']) => path))
  expect(paths.length).toBeGreaterThan(30)
  expect(paths.filter((path) => !existsSync(join(root, 'src', path)))).toEqual([])
})
