import type { Page } from 'playwright-core';

const MIN_PX = 28;

/** What a finger would miss or be caught by: small targets, targets off the edge, boxes that scroll inside a page that does. */
export function touchFindings(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const found = [];
    const boxOf = (element) => element.getBoundingClientRect();
    const isShown = (element) => boxOf(element).width > 1 && boxOf(element).right > 0 &&
      getComputedStyle(element).visibility === 'visible';
    const nameOf = (element) => element.tagName + '.' + element.className + ' ' + element.textContent.slice(0, 30);
    for (const element of document.querySelectorAll('button, a, summary, input, select, textarea')) {
      if (!isShown(element)) continue;
      const { width, height, right } = boxOf(element.matches('[type=checkbox], [type=radio]') ? element.closest('label') : element);
      if (Math.min(width, height) < ${MIN_PX}) found.push(nameOf(element) + ' is ' + width + ' by ' + height);
      if (right > innerWidth && !element.closest('.chips')) found.push(nameOf(element) + ' is off the edge');
    }
    const scrolls = (element) => isShown(element) && element.scrollHeight > element.clientHeight + 1 &&
      /auto|scroll/.test(getComputedStyle(element).overflowY) && element.tagName !== 'TEXTAREA';
    const boxes = [...document.querySelectorAll('body *')].filter(scrolls);
    for (const box of boxes)
      if (boxes.some((outer) => outer !== box && outer.contains(box))) found.push(nameOf(box) + ' scrolls inside a box that scrolls');
    return found;
  })()`);
}
