import { describe, expect, test } from 'bun:test'
import { pageMarkdown } from './page-markdown.ts'

const at = 'https://example.org/docs/page'

describe('a page that would take seconds, or the stack', () => {
  test.each([
    ['20,000 nested elements', '<div>'.repeat(20_000)],
    ['101 nested quotations, which repeat each line', `${'<blockquote>'.repeat(101)}${'x<br>'.repeat(1_000)}`],
    ['20,000 elements', '<p>x'.repeat(20_000)],
    ['a million brackets', '<'.repeat(1_000_000)],
    ['more than a MiB', 'x'.repeat(1_048_577)],
    ['open comments', '<!--'.repeat(200_000)],
    ['nothing', ''],
    ['only a script', '<script>alert(1)</script>'],
  ])('%s is not converted, soon', (_, html) => {
    const before = process.cpuUsage()
    expect(pageMarkdown(html, at)).toBeUndefined()
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1_000).toBeLessThan(2_000)
  })
})

const article = '<p>A sentence of the <b>article</b>, with <a href="../next?a=1#b">a link</a>, that is long enough to be one.</p>'.repeat(
  12,
)

test('the article is left of a page, with its title, its tables and code, and links that lead somewhere', () => {
  const text = pageMarkdown(
    `<html><head><title>The  title</title><style>p{}</style></head><body><nav><a href="/">Home</a><a href="/about">About</a></nav><article>${article}
    <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2<br>3</td></tr></table><pre><code>let a = 1\n\nb()</code></pre>
    <img src="data:image/png;base64,AAAA" alt="a chart"><a href="javascript:alert(1)">bad</a></article><script>bad()</script></body></html>`,
    at,
  )
  expect(text).toStartWith('# The title\n\n')
  expect(text).toContain('A sentence of the **article**, with [a link](https://example.org/next?a=1#b)')
  expect(text).toContain('| a | b |\n| 1 | 2 3 |')
  expect(text).toContain('```\nlet a = 1\n\nb()\n```')
  expect(text).toContain('a chart')
  for (const none of ['javascript:', 'bad()', 'p{}', 'AAAA', 'About']) expect(text).not.toContain(none)
})

test('a page without an article is kept whole; a base address counts', () => {
  const list =
    '<li><a href="x">One</a> <li><a href="/y">Two</a> <li><a href="javascript:x()">Three</a> <li><a href="data:text/html,x">Four</a>'
  expect(pageMarkdown(`<head><base href="https://b.org/z/"></head><ul>${list}</ul>`, at)).toBe(
    '-   [One](https://b.org/z/x)\n-   [Two](https://b.org/y)\n-   Three\n-   Four',
  )
})
