// What is wrong with how a page is laid out, as sentences. It is an expression, evaluated in the page as it stands.
(() => {
  const found = new Set();
  const smallest = 10; // pixels, as drawn
  const name = (e) => {
    const own = e.id ? '#' + e.id : e.getAttribute('class') ? '.' + e.getAttribute('class').split(' ')[0] : '';
    return e.tagName.toLowerCase() + own + ' "' + e.textContent.trim().replace(/\s+/g, ' ').slice(0, 40) + '"';
  };
  const seen = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const hidden = (e) => { // for readers of screens only
    const b = e.getBoundingClientRect();
    return b.width <= 1 || b.height <= 1 || getComputedStyle(e).clipPath !== 'none';
  };
  const scrolls = (e) => {
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
      if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) return true;
    }
    return false;
  };

  // Nothing may stand beside the page, nor be cut off.
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) {
    found.add(`the page is ${document.documentElement.scrollWidth} wide, its window ${width}`);
    for (const e of document.body.querySelectorAll('*')) {
      const b = e.getBoundingClientRect();
      if (seen(e) && b.width > 0 && b.right > width + 1 && !scrolls(e)) found.add('stands out on the right: ' + name(e));
    }
  }
  const printed = matchMedia('print').matches;
  for (const e of document.body.querySelectorAll('*')) {
    if (!seen(e) || e instanceof SVGElement || hidden(e)) continue;
    const { overflowX, overflowY, textOverflow } = getComputedStyle(e);
    const cut = (way) => ['hidden', 'clip'].includes(way) || (printed && way !== 'visible');
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && cut(overflowX) && textOverflow !== 'ellipsis') found.add('is cut off on the right: ' + name(e));
    if (e.scrollHeight > e.clientHeight + 1 && e.clientHeight > 0 && cut(overflowY)) found.add('is cut off below: ' + name(e));
  }

  // Text is large enough, also where a drawing is scaled.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walker.nextNode());) {
    const e = n.parentElement;
    if (!n.data.trim() || !seen(e) || ['SCRIPT', 'STYLE', 'TITLE', 'title', 'desc'].includes(e.tagName) || hidden(e)) continue;
    const scale = e instanceof SVGElement && e.getScreenCTM ? e.getScreenCTM().d : 1;
    const range = document.createRange();
    range.selectNodeContents(n);
    const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.bottom))).size;
    const text = n.data.trim().replace(/\s+/g, ' ');
    if (lines > 2 && !/[\u3000-\u9fff]/.test(text) &&  !/[\u3000-\u9fff]/.test(text) &&  lines > text.split(' ').length && text.length / lines < 7) found.add(`is squeezed into ${lines} lines: ` + name(e));
    const size = parseFloat(getComputedStyle(e).fontSize) * scale;
    if (size < smallest - 0.05) found.add(`text of ${size.toFixed(1)} pixels: ` + name(e));
  }

  // Texts of a drawing stand inside it, on no other text, and can be told from what is behind them.
  const colour = (text) => {
    const c = (text.match(/[\d.]+/g) || []).map(Number);
    return text.startsWith('rgb') ? [c[0], c[1], c[2], c.length > 3 ? c[3] : 1] : null;
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const painted = (e) => {
    const s = getComputedStyle(e);
    const c = colour(e instanceof SVGElement && e.tagName !== 'svg' ? s.fill : s.backgroundColor);
    if (!c) return null;
    c[3] *= s.opacity * (e instanceof SVGElement ? s.fillOpacity : 1);
    return c[3] > 0 ? c : null;
  };
  const behind = (e, x, y) => {
    let layers = [];
    const stack = document.elementsFromPoint(x, y);
    for (const below of stack.slice(stack.indexOf(e) + 1)) {
      const c = below.tagName === 'text' || below.tagName === 'tspan' ? null : painted(below);
      if (c) layers.push(c);
      if (c && c[3] === 1) break;
    }
    return layers.reduceRight((under, c) => over(c, under), [255, 255, 255, 1]);
  };
  for (const svg of document.querySelectorAll('svg')) {
    if (!seen(svg)) continue;
    const texts = [...svg.querySelectorAll('text')].filter((t) => t.textContent.trim() && seen(t));
    const boxes = texts.map((t) => t.getBoundingClientRect());
    const frame = svg.getBoundingClientRect();
    texts.forEach((t, i) => {
      const b = boxes[i];
      if (b.left < frame.left - 1 || b.right > frame.right + 1 || b.top < frame.top - 1 || b.bottom > frame.bottom + 1) found.add('stands out of its drawing: ' + name(t));
      for (let j = 0; j < i; j++) {
        const o = boxes[j];
        if (Math.min(b.right, o.right) - Math.max(b.left, o.left) > 1 && Math.min(b.bottom, o.bottom) - Math.max(b.top, o.top) > 3) found.add('stand on each other: ' + name(texts[j]) + ' and ' + name(t));
      }
    });
    for (const t of texts) {
      t.scrollIntoView({ block: 'center', inline: 'center' });
      const b = t.getBoundingClientRect();
      const ink = painted(t);
      const ground = behind(t, b.left + b.width / 2, b.top + b.height / 2);
      if (ink && contrast(over(ink, ground), ground) < 4.5) found.add(`contrast of ${contrast(over(ink, ground), ground).toFixed(1)}: ` + name(t));
    }
  }
  scrollTo(0, 0);
  const kinds = {}; // ten of each say enough
  return [...found].filter((f) => (kinds[f.split(/[:\d]/)[0]] = (kinds[f.split(/[:\d]/)[0]] || 0) + 1) <= 10);
})()
