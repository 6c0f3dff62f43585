/** Holds the pages together: each is in the index once, and every link leads somewhere. */

import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const root = join(import.meta.dir, '../..')
const docs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
const pages = ['README.md', 'AGENTS.md', 'CHANGELOG.md', ...docs.map((name) => `docs/${name}`)]
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Removes what is code: links in it are examples. */
const proseOf = (text: string) => text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '`')

type Link = { readonly from: string; readonly to: string; readonly anchor: string | undefined }

function linksOf(from: string, text: string): Link[] {
  return [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target)) return []
    const [path = '', anchor] = target.split('#')
    return [{ from, to: path === '' ? from : relative('.', join(dirname(from), path)), anchor }]
  })
}

/** Returns the anchors that GitHub gives the headings of a page. */
function anchorsOf(text: string): string[] {
  const headings = [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)
  const plain = headings.map((heading) => heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase())
  return plain.map((heading) => heading.replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-'))
}

function broken(links: readonly Link[]): string[] {
  return links
    .filter(({ to, anchor }) => {
      if (!existsSync(join(root, to))) return true
      return anchor !== undefined && to.endsWith('.md') && !anchorsOf(read(to)).includes(anchor)
    })
    .map(({ from, to, anchor }) => `${from}: ${to}${anchor === undefined ? '' : `#${anchor}`}`)
}

test('every link of the pages leads to a file and to a heading that are there', () => {
  const links = pages.flatMap((page) => linksOf(page, read(page)))
  expect(links.length).toBeGreaterThan(200)
  expect(broken(links)).toEqual([])
})

test('a link to nowhere is named', () => {
  const links = linksOf('docs/mcp.md', 'See [this](nowhere.md), [that](mcp.md#no-such-heading), [this one](mcp.md). `[code](x.md)`')
  expect(broken(links)).toEqual(['docs/mcp.md: docs/nowhere.md', 'docs/mcp.md: docs/mcp.md#no-such-heading'])
})

test('the index lists each page of docs once', () => {
  const listed = linksOf('docs/README.md', read('docs/README.md')).map(({ to }) => to)
  const expected = docs.map((name) => `docs/${name}`).filter((path) => path !== 'docs/README.md')
  expect(listed.filter((path) => path !== 'README.md').toSorted()).toEqual(expected.toSorted())
})
