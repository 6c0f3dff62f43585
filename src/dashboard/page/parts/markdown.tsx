/** Shows Markdown of a model. Its text only ever becomes text nodes; links lead to the web or to a mail program, and nothing is loaded. */

import { lexer, type Token, type Tokens } from 'marked'
import type { ComponentChildren } from 'preact'
import { Block } from './small.tsx'

export function Markdown({ text }: { readonly text: string }) {
  return <div class="markdown">{lexer(text).map(block)}</div>
}

function block(token: Token): ComponentChildren {
  switch (token.type) {
    case 'paragraph':
      return <p>{inline(token.tokens)}</p>
    case 'heading':
      // The page itself has the first two levels.
      return (token as Tokens.Heading).depth < 3 ? <h3>{inline(token.tokens)}</h3> : <h4>{inline(token.tokens)}</h4>
    case 'code':
      return <Block label={`Code ${(token as Tokens.Code).lang ?? ''}`} text={token.text} />
    case 'list': {
      const { ordered, items } = token as Tokens.List
      const rows = items.map((item) => <li>{item.tokens.map(block)}</li>)
      return ordered ? <ol>{rows}</ol> : <ul>{rows}</ul>
    }
    case 'blockquote':
      return <blockquote>{token.tokens?.map(block)}</blockquote>
    case 'table': {
      const { header, rows } = token as Tokens.Table
      return (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                {header.map((cell) => (
                  <th>{inline(cell.tokens)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr>
                  {row.map((cell) => (
                    <td>{inline(cell.tokens)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )
    }
    case 'hr':
      return <hr />
    case 'space':
      return null
    case 'text':
      return token.tokens ? inline(token.tokens) : plain(token.text)
    default:
      return plain(token.raw)
  }
}

function inline(tokens: readonly Token[] = []): ComponentChildren {
  return tokens.map((token) => {
    switch (token.type) {
      case 'strong':
        return <strong>{inline(token.tokens)}</strong>
      case 'em':
        return <em>{inline(token.tokens)}</em>
      case 'del':
        return <del>{inline(token.tokens)}</del>
      case 'codespan':
        return <code>{plain(token.text)}</code>
      case 'br':
        return <br />
      case 'link':
        return link(token as Tokens.Link)
      case 'image':
        return plain((token as Tokens.Image).text)
      case 'text':
      case 'escape':
        return plain(token.text)
      default:
        return plain(token.raw)
    }
  })
}

function link({ href, tokens }: Tokens.Link): ComponentChildren {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return inline(tokens)
  return (
    <a href={href} rel="noreferrer noopener" target="_blank">
      {inline(tokens)}
    </a>
  )
}

const entities: { readonly [name: string]: string } = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }

/** marked escapes the five entities once; a text node needs them as they were. */
function plain(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (entity) => entities[entity] ?? entity)
}
