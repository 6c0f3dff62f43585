/**
 * Bytes joined and counted without `Buffer`: a function that names it makes the runtime load it when the function is first called, used or
 * not, and that is 0.2 ms of a cold turn of fifteen.
 */

export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0
  for (const part of parts) length += part.length
  const whole = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** How many bytes of UTF-8; a lone surrogate counts as U+FFFD, which takes its place. */
export function utf8Bytes(text: string): number {
  return text.length > 4096 ? ofLongText(text) : ofShortText(text)
}

function ofLongText(text: string): number {
  return Buffer.byteLength(text)
}

function ofShortText(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code > 0x7f) bytes += code > 0x7ff ? 2 : 1
    if (code >= 0xd800 && code <= 0xdbff && isLow(text.charCodeAt(at + 1))) at++
  }
  return bytes
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff
}
