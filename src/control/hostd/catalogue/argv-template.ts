/** Parses one element of an argv template: text with `{param}` in it. Each element stays one element, whatever the values are. */

export type ArgvPiece = { readonly text: string } | { readonly param: string }
export type ArgvElement = readonly ArgvPiece[]

export type ParsedElement = { readonly ok: true; readonly element: ArgvElement } | { readonly ok: false; readonly message: string }

/** `{{` and `}}` stand for the braces themselves. */
export function parseElement(source: string): ParsedElement {
  const element: ArgvPiece[] = []
  let text = ''
  for (const [token, name] of source.matchAll(/\{\{|\}\}|\{([a-z][a-z0-9_]*)\}|[^{}]+|[{}]/g)) {
    if (token === '{{' || token === '}}') text += token[0]
    else if (name !== undefined) {
      if (text !== '') element.push({ text })
      element.push({ param: name })
      text = ''
    } else if (token === '{' || token === '}') {
      return { ok: false, message: `the brace in ${JSON.stringify(source)} begins no parameter such as {name}; write {{ or }} for a brace` }
    } else text += token
  }
  if (text !== '' || element.length === 0) element.push({ text })
  return { ok: true, element }
}

export function paramsOf(element: ArgvElement): string[] {
  return element.flatMap((piece) => ('param' in piece ? [piece.param] : []))
}

/**
 * Inserts the values. A value at the beginning of an element must not look like a flag, and one before another parameter must not contain
 * the text between the two, which would move the border.
 * @returns why the values do not fit
 */
export function fillElement(
  element: ArgvElement,
  values: { readonly [param: string]: string },
): { readonly text: string } | { readonly wrong: string } {
  let filled = ''
  for (const [at, piece] of element.entries()) {
    if ('text' in piece) {
      filled += piece.text
      continue
    }
    const value = values[piece.param] ?? ''
    const border = element.slice(at + 2).some((later) => 'param' in later) ? element[at + 1] : undefined
    if (border && 'text' in border && value.includes(border.text))
      return { wrong: `${piece.param}: must not contain ${JSON.stringify(border.text)}` }
    if (filled === '' && value.startsWith('-')) return { wrong: `${piece.param}: must not begin with "-", which would make it a flag` }
    filled += value
  }
  return { text: filled }
}
