/** Pages made from code are what the code says now, and the README stays short. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
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
