/** Turns a web page into Markdown: its article, or all of it when it has none. */

import { Readability } from '@mozilla/readability'
import { parseHTML } from 'linkedom'
import TurndownService from 'turndown'
import { attempt } from '../kit/errors.ts'

/** A longer page takes seconds, and a deeper one overflows the stack. */
const [mostCharacters, mostElements, mostDepth] = [1_048_576, 10_000, 100]
/** An article with a smaller share of the text of its page is a wrong guess. */
const articleShare = 0.3
/** Elements that need no end tag of their own. */
const unclosed = 'area base br col dd dt embed hr img input li link meta option p param source td th track tr wbr'.split(' ')

/** @returns undefined for a page that is too long, too deep, has no text, or breaks one of the libraries */
export function pageMarkdown(html: string, address: string): string | undefined {
  const isShort = html.length <= mostCharacters && html.split('<').length <= mostElements * 4
  return isShort && isModest(html) ? attempt(() => converted(html, address)) : undefined
}

function converted(html: string, address: string): string | undefined {
  const { document } = parseHTML(/<html[\s>]/i.test(html) ? html : `<html><body>${html}</body></html>`)
  for (const each of document.querySelectorAll('script,style,noscript,template,svg,iframe')) each.remove()
  const base = URL.parse(document.querySelector('base')?.getAttribute('href') ?? '', address)?.href ?? address
  for (const link of document.querySelectorAll('a[href]')) {
    const url = URL.parse(link.getAttribute('href') ?? '', base)
    if (url && /^(https?|mailto):$/.test(url.protocol)) link.setAttribute('href', url.href)
    else link.removeAttribute('href')
  }
  const title = document.title.replace(/\s+/g, ' ').trim()
  const markdown = createConverter()
  const whole = markdown.turndown(document.body)
  const article = new Readability(document).parse()?.content
  const shorter = article ? markdown.turndown(parseHTML(`<html><body>${article}</body></html>`).document.body) : ''
  const text = shorter.length >= whole.length * articleShare ? shorter : whole
  return text.trim() === '' ? undefined : [...(title === '' ? [] : [`# ${title}`]), text].join('\n\n')
}

/** Counts before anything builds a tree of the page. */
function isModest(html: string): boolean {
  let [elements, depth, deepest] = [0, 0, 0]
  const counter = new HTMLRewriter().on('*', {
    element(element) {
      elements++
      if (unclosed.includes(element.tagName) || element.selfClosing) return
      deepest = Math.max(deepest, ++depth)
      element.onEndTag(() => void depth--)
    },
  })
  counter.transform(html)
  return elements <= mostElements && deepest <= mostDepth
}

function createConverter(): TurndownService {
  return new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', hr: '---' })
    .addRule('picture', { filter: 'img', replacement: (_, node) => ('getAttribute' in node ? (node.getAttribute('alt') ?? '') : '') })
    .addRule('row', { filter: 'tr', replacement: (content) => `\n|${content}` })
    .addRule('cell', { filter: ['td', 'th'], replacement: (content) => ` ${content.trim().replace(/\s*\n\s*/g, ' ')} |` })
}
